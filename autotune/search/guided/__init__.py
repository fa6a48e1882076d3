"""The guided sampler: models of time and memory that learn from every run."""
