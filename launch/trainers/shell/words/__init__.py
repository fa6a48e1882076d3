"""What words come to, given what a shell remembers."""
