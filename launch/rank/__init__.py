"""What runs inside a trial's ranks: standard library only."""
