"""Reading what training programs print: bytes -> lines -> steps and memory. Pure."""
