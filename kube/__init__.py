"""Where the cluster is read and written: manifests, a folder of them in place of an API server, and a real one."""
