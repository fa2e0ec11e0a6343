"""Registers the webhooks: decides from what is stored what to write, and writes it."""
