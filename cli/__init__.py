"""What a person types: `halfcard review|inspect|explain|top|simulate|serve|webhooks|demo|dev`."""
