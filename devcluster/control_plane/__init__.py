"""Starts etcd, the API server, the controller manager and the scheduler, and talks to them."""
