"""Goes through statements and notes what they would do."""
