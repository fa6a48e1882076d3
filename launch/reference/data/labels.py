"""The label that marks positions without a loss."""

IGNORED = -100
