"""A real Kubernetes control plane for tests: start it, use it as anybody, break it, leave nothing behind."""
