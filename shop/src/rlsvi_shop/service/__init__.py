"""The shop as a service: a FastAPI application, its processes, and the page to watch it."""
