"""`halfcard dev`: a cluster in the background for people who want to try Halfcard."""
