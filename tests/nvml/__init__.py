"""NVIDIA's driver for machines without one: a stand-in for its library, so that the very same Python runs in tests."""
