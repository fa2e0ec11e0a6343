"""Tests on real nodes: kubelet, containerd, runc."""
