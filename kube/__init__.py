"""Reads and writes the cluster: a real API server, or a folder of manifests in its place.

- `api`: access, single calls, list and watch
- `lease`: leader election
- `ledger`: ledgers in ConfigMaps, and how replicas share the writing
- `quota`: quota objects and native quotas
- `token_access`: whether the owner of a token may read a path
- `manifests`: YAML and JSON files
"""
