"""What later papers built on this one: see docs/descendants.md."""
