from __future__ import annotations

import re
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfcard.node_folders import HARMLESS, SYSTEM_FOLDERS, is_within, leads_to_cards, pattern, real_path

REACHING: Final = [
    *SYSTEM_FOLDERS,
    *("/", "//", "", ".", "/var", "/var/", "/opt", "/var/run", "/var/run/", "/var//run/docker.sock"),
    *("/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap1", "/dev/dri/card0", "/dev/char/195:0", "/dev/sda", "/dev/mem"),
    *("//dev/../dev/nvidia0", "/dev//./nvidia0/", "/data/../dev", "dev/nvidia0", "/dev/null/../nvidia0"),
    *(
        "/proc/1/root/dev/nvidia0",
        "/proc/self/root/data",
        "/proc/thread-self/cwd",
        "/proc/1/task/1/root",
        "/proc/7/fd/9",
    ),
    *("/sys/fs/cgroup", "/sys/bus/pci/devices", "/sys/devices", "/sys/devices/system"),
    *("/run/nri", "/run/nri/nri.sock", "/var/run/nri/nri.sock", "/run/containerd/containerd.sock"),
    *("/run/k3s/containerd/containerd.sock", "/run/k0s", "/run/crio/crio.sock", "/run/cri-dockerd.sock"),
    *("/run/podman/podman.sock", "/run/docker.sock", "/run/buildkit/buildkitd.sock", "/run/dbus/system_bus_socket"),
    *("/run/systemd/private", "/run/netns", "/run/udev", "/run/cdi", "/run/nvidia", "/run/a-socket-of-tomorrow.sock"),
    *("/etc/containerd", "/etc/containerd/config.toml", "/etc/crio", "/etc/docker", "/etc/cdi", "/etc/cni/net.d"),
    *("/etc/kubernetes", "/etc/kubernetes/halfcard", "/etc/kubernetes/halfcard/tls.key", "/etc/kubernetes/manifests"),
    *("/etc/nvidia-container-runtime", "/etc/nri/conf.d", "/etc/systemd/system", "/etc/cron.d", "/etc/ld.so.preload"),
    *("/etc/rancher", "/etc/ssl", "/etc/ssl/private", "/etc/localtime/../shadow", "/etc/hosts.allow"),
    *("/var/lib/kubelet", "/var/lib/kubelet/pods", "/var/lib/kubelet/pods/x/volumes", "/var/lib/kubelet/plugins"),
    *(
        "/var/lib/kubelet/device-plugins/kubelet.sock",
        "/var/lib/kubelet/pki",
        "/var/lib/halfcard",
        "/var/lib/containerd",
    ),
    *(
        "/var/lib/docker",
        "/var/lib/rancher/k3s/agent",
        "/var/lib/etcd",
        "/var/lib/cni",
        "/var/snap/microk8s/common/run",
    ),
    *(
        "/usr/bin",
        "/usr/bin/nvidia-container-runtime",
        "/usr/local/bin",
        "/usr/local/nvidia/toolkit",
        "/usr/lib/systemd",
    ),
    *("/usr/share", "/usr/share/containers/oci/hooks.d", "/lib/systemd/system", "/opt/cni/bin", "/opt/nri/plugins"),
    *("/root/.kube", "/boot/grub", "/var/spool/cron", "/var/lock"),
]
HARMLESS_PATHS: Final = [
    *sorted(HARMLESS),
    *("/data", "/data/nvidia0", "/mnt/nfs", "/srv", "/home/dev/nvidia0", "/home", "/tmp", "/scratch", "/opt/models"),
    *(
        "/device",
        "/devices/nvidia0",
        "/development",
        "/optional",
        "/variable",
        "/var/log",
        "/var/log/pods",
        "/var/runner",
    ),
    *(
        "/var/tmp",
        "/var/cache",
        "/dev/shm/x",
        "/etc/ssl/certs/ca.pem",
        "/usr/share/zoneinfo/UTC",
        "/var/run/log/journal",
    ),
]


@pytest.mark.parametrize("path", REACHING)
def test_a_folder_of_the_system_and_what_is_above_one_lead_to_cards(path: str) -> None:
    assert leads_to_cards(path)
    if ".." not in path:
        assert re.search(pattern(), "/" + path.lstrip("/"))


@pytest.mark.parametrize("path", HARMLESS_PATHS)
def test_data_and_harmless_files_lead_to_no_card(path: str) -> None:
    assert not leads_to_cards(path)


@pytest.mark.parametrize("path", ["/data", "/mnt/nfs", "/development", "/optional/cni", "/var/log/pods", "/home/dev"])
def test_the_api_server_does_not_send_folders_of_data(path: str) -> None:
    assert not re.search(pattern(), path)


def test_an_allowed_folder_is_open_with_everything_below_it_and_nothing_else_is() -> None:
    allowed = ["/var/lib/models"]
    assert not leads_to_cards("/var/lib/models", allowed=allowed)
    assert not leads_to_cards("/var/lib/models/llama", allowed=allowed)
    for path in ("/var/lib/models2", "/var/lib/models/../kubelet", "/var/lib", "/var"):
        assert leads_to_cards(path, allowed=allowed)


def test_what_is_harmless_lies_in_a_folder_of_the_system() -> None:
    for path in sorted(HARMLESS):
        assert real_path(path) == path
        assert any(is_within(path, folder) for folder in SYSTEM_FOLDERS)
        assert path not in SYSTEM_FOLDERS


parts = st.sampled_from(
    [
        *("", ".", "dev", "var", "run", "lib", "etc", "log", "opt", "cni", "usr", "bin", "sys", "root", "proc", "1"),
        *("kubelet", "nvidia0", "data", "shm", "localtime", "ssl", "certs", "spool", "snap"),
    ]
)


@given(st.lists(parts, max_size=7), st.sampled_from(["/", "//", "/./"]))
def test_every_path_that_leads_to_cards_is_sent(found: list[str], separator: str) -> None:
    path = "/" + separator.join(found)
    if leads_to_cards(path):
        assert re.search(pattern(), path)


@given(st.lists(parts, max_size=7))
def test_a_folder_above_one_that_leads_to_cards_leads_to_cards(found: list[str]) -> None:
    path = "/" + "/".join(found)
    if leads_to_cards(path) and not any(is_within(real_path(path), harmless) for harmless in HARMLESS):
        above = real_path(path).rpartition("/")[0] or "/"
        assert leads_to_cards(above) or not any(is_within(above, folder) for folder in SYSTEM_FOLDERS)
