"""What `halfcard review` reads, what it found, and the forms in which it prints that."""
