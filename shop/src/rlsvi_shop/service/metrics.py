"""What Prometheus is told. With several processes, prometheus_client keeps the numbers in files that all share."""

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
PATHS = ("/recommend", "/feedback", "/close", "/products", "/statistics", "/metrics", "/health", "/")
BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)  # seconds
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)  # requests


class Metrics:
    """The numbers of one process."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = Counter("rlsvi_requests", "Requests answered.", ("path", "status"), registry=registry)
        seconds = Histogram(
            "rlsvi_request_seconds", "Seconds until the answer.", ("path",), buckets=BOUNDS, registry=registry
        )
        self.batch = Histogram(
            "rlsvi_batch_requests", "Requests in a transaction.", buckets=SIZES, registry=registry
        )
        self.sample = Gauge(
            "rlsvi_sample_event",
            "The last event that the samples in use have learned from.",
            multiprocess_mode="livemin",
            registry=registry,
        )
        self.drawn = Gauge(
            "rlsvi_sample_time_seconds",
            "When the samples in use were drawn, in seconds since 1970.",
            multiprocess_mode="livemin",
            registry=registry,
        )
        self.learner = Gauge(
            "rlsvi_learner_time_seconds",
            "When the learner noted last that it works, in seconds since 1970.",
            multiprocess_mode="livemax",
            registry=registry,
        )
        self._paths = {path: seconds.labels(path) for path in (*PATHS, "other")}

    def count_answer(self, path: str, status: int, seconds: float) -> None:
        """Count an answer."""
        name = path if path in self._paths else "/products" if path.startswith("/products/") else "other"
        self._requests.labels(name, status).inc()
        self._paths[name].observe(seconds)

    def text(self) -> bytes:
        """Return the numbers of all processes in Prometheus's format."""
        registry = self._registry
        if FOLDER in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)
