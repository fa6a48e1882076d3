"""What profiles show besides the phases of the step, as advice: one module an analysis."""
