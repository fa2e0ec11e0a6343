"""Nodes that run pods: kubelet and containerd in namespaces of this machine."""
