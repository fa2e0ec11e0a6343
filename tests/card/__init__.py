"""Tries the isolation libraries with PyTorch and vLLM on a real NVIDIA card: `make test-card`."""
