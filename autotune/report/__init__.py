"""The report of a study: what was tried, what it came to, where the time goes."""
