"""Hydra configuration: YAML files, no logic."""
