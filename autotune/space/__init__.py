"""What may vary and which combinations are legal."""
