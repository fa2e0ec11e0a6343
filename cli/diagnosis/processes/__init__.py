"""Checks of Halfcard's own processes: workloads, pods, rights, settings and Services."""
