"""Builds the site of the pages (`make docs`); links lead to the same targets as on GitHub."""
