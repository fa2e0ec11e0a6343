"""The cards of a machine: one interface, NVIDIA's driver behind it, and fake cards."""
