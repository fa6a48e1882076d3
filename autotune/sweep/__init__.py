"""The loop: propose, launch, measure, keep, until the budget or the space is used up."""
