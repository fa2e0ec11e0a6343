"""What a person types: `halfcard review|serve|demo`."""
