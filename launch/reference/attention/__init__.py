"""Exact attention over sequences that are spread over ranks."""
