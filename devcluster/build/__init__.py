"""Builds etcd, Kubernetes, kwok, helm and containerd from Go modules, once, into the cache."""
