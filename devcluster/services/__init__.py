"""Halfcard's processes beside a cluster, with the RBAC and the certificates of the chart."""
