"""The reference trainer: a small distributed trainer that uses every tuned technique."""
