"""Samplers against each other on a recorded table: no devices, many seeds."""
