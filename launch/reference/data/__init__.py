"""The data window: its samples, their order, and what each rank gets of them."""
