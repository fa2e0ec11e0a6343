"""The arguments of the agent, and the paths on its node that they name."""

from __future__ import annotations

import argparse
import socket
from dataclasses import dataclass
from pathlib import Path

from halfcard import names
from serving.address import Address, argument
from serving.log import LogForm


@dataclass(frozen=True, slots=True)
class AgentPorts:
    """Where the agent listens.

    Attributes:
        http: for probes, without TLS.
        https: for people and Prometheus, who send a token.
        plain_metrics: `http` has the metrics too.
    """

    http: Address
    https: Address
    plain_metrics: bool = False


@dataclass(frozen=True, slots=True)
class NodePaths:
    """The paths on this node.

    Attributes:
        node: its name.
        ports: where it listens.
        devices: the folder of the driver's device files.
        plugins: kubelet's folder of plugins' sockets.
        pod_resources: kubelet's socket that lists holders of ids.
        cdi: the folder where the runtime reads CDI descriptions.
        state: our own folder.
        libraries: the folder of the isolation libraries in the image.
        run: our own folder in memory, with the accounts of held containers.
        by_symlinks: the runtime does not support CDI.
    """

    node: str
    ports: AgentPorts
    devices: Path
    plugins: Path
    pod_resources: Path
    cdi: Path
    state: Path
    libraries: Path
    run: Path
    by_symlinks: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="default: the pod's service account")
    parser.add_argument("--node", default=socket.gethostname(), metavar="NAME", help="this node (default %(default)s)")
    parser.add_argument("--settings", type=Path, metavar="FILE", help="the installation's settings")
    parser.add_argument(
        "--http",
        type=argument,
        default=f":{names.AGENT_PORT}",
        metavar="ADDRESS",
        help="health, without TLS (default %(default)s)",
    )
    parser.add_argument(
        "--https",
        type=argument,
        default=f":{names.AGENT_TLS_PORT}",
        metavar="ADDRESS",
        help="metrics and usage, for tokens that may read them (default %(default)s)",
    )
    parser.add_argument(
        "--plain-metrics",
        action="store_true",
        help="metrics without TLS too, for any caller, as gpu-manager has them",
    )
    parser.add_argument(
        "--fake-gpus", metavar="SPEC", help="offer cards that do not exist, such as 4xT4, to try Halfcard"
    )
    parser.add_argument(
        "--without-cdi", action="store_true", help="for runtimes older than containerd 2.0: cards by links"
    )
    _add_folders(parser)
    parser.add_argument("--log", type=LogForm, choices=list(LogForm), default=LogForm.JSON, help="form of log lines")


def _add_folders(parser: argparse.ArgumentParser) -> None:
    for argument_name, default, what in (
        ("--device-root", "/dev", "the driver's device files"),
        ("--kubelet-plugins", names.KUBELET_PLUGINS, "kubelet's folder of plugins' sockets"),
        (
            "--pod-resources",
            names.KUBELET_POD_RESOURCES,
            "kubelet's socket that lists which container holds which devices",
        ),
        ("--cdi-dir", names.CDI_FOLDER, "where the runtime looks for descriptions of devices"),
        ("--state-dir", names.STATE_FOLDER, "our own folder"),
        ("--run-dir", names.RUN_FOLDER, "our own folder in memory"),
        ("--libraries", names.LIBRARIES_FOLDER, "the isolation libraries"),
    ):
        parser.add_argument(
            argument_name, type=Path, default=Path(default), metavar="PATH", help=f"{what} (default %(default)s)"
        )


def paths_of(arguments: argparse.Namespace) -> NodePaths:
    return NodePaths(
        node=arguments.node,
        ports=AgentPorts(arguments.http, arguments.https, plain_metrics=arguments.plain_metrics),
        devices=arguments.device_root,
        plugins=arguments.kubelet_plugins,
        pod_resources=arguments.pod_resources,
        cdi=arguments.cdi_dir,
        state=arguments.state_dir,
        libraries=arguments.libraries,
        run=arguments.run_dir,
        by_symlinks=arguments.without_cdi,
    )
