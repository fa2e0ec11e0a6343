"""What a call must be before its review is parsed: from a proven caller, and of a bounded size and density."""
