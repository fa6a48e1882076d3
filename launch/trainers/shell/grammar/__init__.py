"""Text of a script -> its statements and words."""
