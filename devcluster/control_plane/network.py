"""Where a cluster's programs listen: in their own network namespace, or on loopback.

In a namespace the API server calls webhooks by Service reference, as shipped. EndpointSlices refuse loopback
addresses, and the host's end of the veth pair is not one.

Law: a process holds the namespace; when it ends, the kernel removes the namespace and the pair.
"""

from __future__ import annotations

import errno
import ipaddress
import itertools
import os
import random
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from ..errors import CannotStartError
from ..processes import Component, Launcher
from ..waiting import wait_until

# 198.18.0.0/15 is set aside for tests between networks (RFC 2544): no real network is hidden by it.
# The other half of it links nodes to their cluster.
_NETWORKS = ipaddress.ip_network("198.18.0.0/16")
_PROGRAMS = {"ip": "iproute2", "unshare": "util-linux", "nsenter": "util-linux", "setpriv": "util-linux"}
_FIRST_PORT: Final = 10_000
_LAST_PORT: Final = 60_000
_MOST_TRIED: Final = 1000
_USUAL_PORTS = {
    "etcd": 2379,
    "etcd-peer": 2380,
    "apiserver": 443,  # that of the Service kubernetes: without kube-proxy nothing translates it
    "controller-manager": 10257,
    "scheduler": 10259,
}


@dataclass(frozen=True, slots=True)
class Network:
    """The programs listen at `address`, servers of a test (such as webhooks) at `host_address`."""

    address: str
    host_address: str
    enter: tuple[str, ...]
    ports: Mapping[str, int]


@cache
def _unchosen_ports() -> Iterator[int]:
    """Yields ports that the kernel gives to no client, from a random one on, so that two callers get different ones."""
    first_chosen = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = range(_FIRST_PORT, first_chosen if first_chosen > _FIRST_PORT else _LAST_PORT)
    start = random.randrange(len(ports))
    return itertools.cycle((*ports[start:], *ports[:start]))


def free_port(address: str = "127.0.0.1") -> int:
    """Returns a port that stays free until the caller listens; the kernel may give one that it chose to a client."""
    for port in itertools.islice(_unchosen_ports(), _MOST_TRIED):
        if _is_free(address, port):
            return port
    raise CannotStartError(f"no free port at {address or 'any address'}: {_MOST_TRIED} in a row are taken.")


def _is_free(address: str, port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((address, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
        return True


def check_machine(needed: Mapping[str, str] = _PROGRAMS) -> None:
    missing = sorted({package for program, package in needed.items() if shutil.which(program) is None})
    if missing:
        raise CannotStartError(f"{', '.join(missing)} missing: run `apt-get install {' '.join(missing)}`.")


@contextmanager
def loopback_network() -> Iterator[Network]:
    """Needs no root; webhooks are then registered by URL."""
    check_machine({"setpriv": "util-linux"})
    yield Network("127.0.0.1", "127.0.0.1", (), {name: free_port() for name in _USUAL_PORTS})


def ip(*arguments: str, within: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Runs `ip`; the parameter within is the command that enters a namespace."""
    return subprocess.run([*within, "ip", *arguments], capture_output=True, text=True, check=False)


def must_ip(*arguments: str, within: Sequence[str] = ()) -> None:
    done = ip(*arguments, within=within)
    if done.returncode != 0:
        raise CannotStartError(f"`ip {' '.join(arguments)}` failed ({done.stderr.strip()}): this needs CAP_NET_ADMIN.")


def create_pair(prefix: str, peer_process: int, *, most: int, within: Sequence[str] = ()) -> int:
    """Creates a veth pair. The name of our end claims its number and its addresses: the kernel gives a name only
    once.
    """
    peer = ("peer", "name", "eth0", "netns", str(peer_process))
    for number in range(most):
        done = ip("link", "add", f"{prefix}{number}", "type", "veth", *peer, within=within)
        if done.returncode == 0:
            return number
        if "File exists" not in done.stderr:
            raise CannotStartError(
                f"no veth pair ({done.stderr.strip()}): this needs the kernel's veth and CAP_NET_ADMIN."
            )
    raise CannotStartError(f"all {most} networks are taken: remove unused interfaces {prefix}N with `ip link delete`.")


@contextmanager
def _held_namespace(launcher: Launcher, folder: Path) -> Iterator[int]:
    holder = Component(
        "network",
        ["unshare", "--net", "sh", "-c", "echo held; exec sleep infinity"],
        folder / "network.log",
        launcher,
    )
    holder.start()
    try:
        wait_until(lambda: "held" in holder.log_tail() or not holder.running(), what="a network namespace")
        if not holder.running():
            raise CannotStartError(f"no network namespace ({holder.log_tail(1)}): run with CAP_SYS_ADMIN.")
        yield holder.pid
    finally:
        holder.kill()


@contextmanager
def private_network(launcher: Launcher, folder: Path) -> Iterator[Network]:
    if os.geteuid() != 0:
        raise CannotStartError(
            "a network namespace needs root: use Cluster(in_namespace=False) where webhooks by URL will do."
        )
    check_machine()
    with _held_namespace(launcher, folder) as holder:
        number = create_pair("halfcard", holder, most=_NETWORKS.num_addresses // 4)
        first = int(_NETWORKS.network_address) + 4 * number
        outside, inside = (str(ipaddress.ip_address(first + offset)) for offset in (1, 2))
        enter = ("nsenter", f"--net=/proc/{holder}/ns/net", "--")
        try:
            must_ip("address", "add", f"{outside}/30", "dev", f"halfcard{number}")
            must_ip("link", "set", f"halfcard{number}", "up")
            must_ip("address", "add", f"{inside}/30", "dev", "eth0", within=enter)
            must_ip("link", "set", "eth0", "up", within=enter)
            must_ip("link", "set", "lo", "up", within=enter)
            yield Network(inside, outside, enter, _USUAL_PORTS)
        finally:
            # The kernel would do it too once the namespace is gone, but a moment later than close() returns.
            ip("link", "delete", f"halfcard{number}")
