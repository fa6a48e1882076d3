"""Why a trial failed, by kind, and what follows from it. Pure."""
