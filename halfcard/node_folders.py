"""Which folders and files of a node lead to its cards, so that pods may not mount them.

The ways from a folder of the system to a card are many: device files, sockets of the container runtime, of NRI and of
kubelet, kernel files, CDI descriptions, static pods, keys, programs that the node starts as root. So a folder of the
system is closed as a whole, except for what is known to be harmless. All other folders are data, and open.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping
from typing import Final

SYSTEM_FOLDERS: Final[Mapping[str, str]] = {
    "/dev": "device files, also by number and of disks",
    "/proc": "processes with their files and variables (`/proc/PID/root`)",
    "/sys": "devices, their memory, and control groups, which allow devices",
    "/run": "sockets of container runtimes, NRI, systemd and node agents; CDI descriptions. `/var/run` is this folder",
    "/etc": "configuration of container runtimes, CDI descriptions, static pods, keys such as that of the scheduler",
    "/usr": "programs that the node starts as root, such as runc and NVIDIA's runtime",
    **dict.fromkeys(("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"), "as `/usr`"),
    "/boot": "the kernel and its arguments",
    "/root": "credentials of administrators",
    "/snap": "programs of snaps, such as MicroK8s",
    "/opt/bin": "programs, on some distributions",
    "/opt/cni": "programs that the container runtime starts",
    "/opt/containerd": "programs that the container runtime starts",
    "/opt/nri": "plugins that the container runtime starts",
    "/opt/nvidia": "NVIDIA's programs",
    "/var/lib": "kubelet with its pods and sockets, container runtimes, etcd, node agents",
    "/var/lock": "a link into `/run`",
    "/var/roothome": "`/root`, on some distributions",
    "/var/snap": "data of snaps, such as MicroK8s with its sockets",
    "/var/spool": "jobs of cron",
    "/var/usrlocal": "`/usr/local`, on some distributions",
    "/var/vcap": "programs and sockets, on BOSH",
}
"""Each with what is there."""

HARMLESS: Final = frozenset(
    {
        *(f"/dev/{name}" for name in ("full", "null", "random", "tty", "urandom", "zero")),
        *(f"/dev/{name}" for name in ("fuse", "hugepages", "infiniband", "kvm", "log", "mqueue", "net", "shm")),
        *(f"/etc/{name}" for name in ("hostname", "hosts", "localtime", "machine-id", "os-release", "resolv.conf")),
        *(f"/etc/{name}" for name in ("ca-certificates", "pki/ca-trust", "pki/tls/certs", "ssl/certs", "timezone")),
        *(
            f"/proc/{name}"
            for name in ("cpuinfo", "diskstats", "loadavg", "meminfo", "stat", "swaps", "uptime", "version")
        ),
        "/lib/modules",
        "/run/log",
        "/run/systemd/resolve",
        "/run/xtables.lock",
        "/sys/devices/system/cpu",
        "/sys/devices/system/node",
        "/usr/lib/modules",
        "/usr/lib/os-release",
        "/usr/share/ca-certificates",
        "/usr/share/zoneinfo",
        "/usr/src",
        "/var/lib/dbus/machine-id",
        "/var/lib/lxcfs",
    }
)
"""Folders and files within those above that give no device and start nothing."""


def real_path(path: str) -> str:
    """Returns the path that is meant: // is /, and /var/run is a link to /run."""
    plain = posixpath.normpath("/" + path.lstrip("/"))
    return plain.removeprefix("/var") if is_within(plain, "/var/run") else plain


def leads_to_cards(path: str, *, allowed: Collection[str] = ()) -> bool:
    """Returns whether the path is in a folder of the system, or above one; `allowed` are further harmless paths.

    A mount of the folder above shows everything below it, also through a `subPath`, and also where it is read-only: a
    socket can be written to.
    """
    real = real_path(path)
    if any(is_within(folder, real) for folder in SYSTEM_FOLDERS):
        return True
    if not any(is_within(real, folder) for folder in SYSTEM_FOLDERS):
        return False
    return not any(is_within(real, harmless) for harmless in (*HARMLESS, *allowed))


def is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def pattern() -> str:
    """Returns a pattern of at least every path that leads to cards, with any number of slashes and dots."""
    tops = sorted({folder.split("/")[1] for folder in SYSTEM_FOLDERS if folder.count("/") == 1})
    return f"^[/.]*(({'|'.join(tops)})([/.].*)?|{'|'.join(map(_below, _SPLIT))})?[/.]*$"


_SPLIT: Final = tuple(sorted({folder.split("/")[1] for folder in SYSTEM_FOLDERS if folder.count("/") > 1}))


def _below(top: str) -> str:
    found = {folder.split("/")[2] for folder in SYSTEM_FOLDERS if folder.startswith(f"/{top}/")}
    names = sorted(found | ({"run"} if top == "var" else set()))
    return f"{top}([/.]+({'|'.join(names)})([/.].*)?)?"
