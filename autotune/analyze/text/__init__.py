"""Analyses as a person reads them, in 100 columns: one module a section."""
