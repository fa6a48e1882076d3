"""All trials of one model, space, cluster and environment, and where they are kept."""
