"""What a person types: `halfcard review|serve|webhooks|demo|dev`."""
