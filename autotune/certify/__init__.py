"""From many measurements to one winner: drift, rechecks, an interleaved contest. Pure."""
