"""The reference models, written for local shards of a sequence."""
