"""What is known beforehand of time and memory: a white-box cost model, calibrated by runs."""
