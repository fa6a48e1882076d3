"""From Hydra files and overrides to one validated `Config`."""
