"""What a trial's records are worth: a measurement or a typed failure. Pure."""
