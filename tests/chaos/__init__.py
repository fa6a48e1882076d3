"""Whatever dies during a sweep, nothing is lost and nothing is left."""
