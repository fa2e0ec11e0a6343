"""The settings of an installation: one file, read by every process."""
