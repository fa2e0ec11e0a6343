"""Checks of certificates: what is trusted, what is served, and what is due."""
