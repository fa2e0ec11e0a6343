"""Where the cluster is read: manifests, a folder of them that stands in for an API server, and a real one."""
