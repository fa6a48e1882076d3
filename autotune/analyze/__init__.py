"""Profiles -> where the time, the traffic and the memory went. Pure but for reading files."""
