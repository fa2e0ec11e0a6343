"""Programs of the tries; each runs in an environment of its own, with PyTorch and vLLM."""
