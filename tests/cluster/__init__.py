"""Tests on a real Kubernetes control plane, and what only they need."""
