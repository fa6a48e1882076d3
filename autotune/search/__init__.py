"""What to try next: Optuna samplers over the legal points."""
