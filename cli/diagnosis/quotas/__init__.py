"""Checks of quotas: GpuQuotas with their ledgers, and ResourceQuotas."""
