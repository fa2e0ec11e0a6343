"""Starts a real Kubernetes with Halfcard on this machine, for `halfcard dev` and for tests.

It runs from a checkout only: neither the wheel nor the image contains it. `README.md` shows how tests use it.
"""
