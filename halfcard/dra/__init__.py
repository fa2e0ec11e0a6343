"""Dynamic Resource Allocation: what claims request, and which nodes have a driver."""
