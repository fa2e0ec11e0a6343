"""Reads and writes the cluster: a real API server, or a folder of manifests in its place.

- `api`: access, single calls, list and watch
- `lease`: leader election
- `ledger`: ledgers in ConfigMaps, and how replicas share the writing
- `quota`: quota objects and native quotas
- `manifests`: YAML and JSON files
"""
