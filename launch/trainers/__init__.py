"""Adapters: what a trial of a training program is. Pure, they start nothing."""
