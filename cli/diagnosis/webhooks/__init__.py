"""Checks of the webhooks: their registration, their answers, and the workloads that they would refuse."""
