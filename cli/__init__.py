"""What a person types: `halfcard review|inspect|explain|top|doctor|simulate|serve|webhooks|demo|dev`."""
