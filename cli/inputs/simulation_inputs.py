"""Reads the input of a replay: nodes and pods from the tables of a trace, from manifests or from a dump of a
cluster.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from extender.packing.fleet import fleet_of, usual_card_mib
from halfcard.cards import Node
from halfcard.exit_codes import UnusableInputError
from halfcard.placing.pod_facts import read_facts
from settings.settings_file import load_settings
from simulation.openb import TableError, read_nodes, read_pods
from simulation.workload import ReplayWorkload, TracePod, pod_of

from .cluster_state import read_cluster
from .workload_pods import pods_of_workloads

_TABLE: Final = ".csv"
_PLENTY: Final = 2**40


class NoWorkloadError(UnusableInputError):
    """There is nothing to replay; the text says why and how to fix it."""


class Read(NamedTuple):
    """The workload; `left_out` describes what could not be read, a sentence each."""

    workload: ReplayWorkload
    left_out: tuple[str, ...]


def read_workload(nodes: Path, pods: Path, settings: Path | None = None) -> Read:
    """Reads nodes and pods; both may be in the same file or folder.

    Raises:
        NoWorkloadError: a table cannot be read, or nodes or pods are missing.
        NoClusterError, ManifestError, SettingsError: manifests or settings cannot be read.
    """
    try:
        there, odd = _nodes(nodes, settings)
        coming, strange = _pods(pods, settings, usual_card_mib(fleet_of(there)))
    except TableError as error:
        raise NoWorkloadError(str(error)) from None
    if not there:
        raise NoWorkloadError(f"{nodes}: it has no Node; save them with `kubectl get nodes -o json`")
    if not coming:
        raise NoWorkloadError(f"{pods}: it has no Pod that has to run; save them with `kubectl get pods -A -o json`")
    return Read(ReplayWorkload(there, coming, load_settings(settings).strengths()), (*odd, *strange))


def _nodes(path: Path, settings: Path | None) -> tuple[tuple[Node, ...], tuple[str, ...]]:
    if path.suffix == _TABLE:
        return read_nodes(_text(path), str(path)), ()
    cluster = read_cluster(_manifests(path, settings))
    return tuple([_plentiful(node) for node in cluster.state.nodes().values()]), cluster.state.inconsistencies()


def _plentiful(node: Node) -> Node:
    """Gives plenty of what the node does not state, so that no pod waits for it."""
    return replace(node, cpu_milli=node.cpu_milli or _PLENTY, memory_mib=node.memory_mib or _PLENTY)


def _pods(path: Path, settings: Path | None, card_mib: int) -> tuple[tuple[TracePod, ...], tuple[str, ...]]:
    """Reads pods without their nodes: in the replay they arrive one after the other at empty nodes."""
    if path.suffix == _TABLE:
        return read_pods(_text(path), str(path)), ()
    cluster = read_cluster(_manifests(path, settings), pods_of_workloads)
    found = [read_facts(pod, cluster.state.dialects) for pod in cluster.pods.values()]
    runnable = [facts for facts in found if not facts.is_over and not facts.trouble]
    to_run = sorted(runnable, key=lambda facts: facts.created)  # pods that do not exist yet keep their order
    refused = [f"pod {facts.title} is left out: {facts.trouble}" for facts in found if facts.trouble]
    return tuple([pod_of(each.title, each.demand, card_mib) for each in to_run]), (*cluster.left_out, *refused)


def _manifests(path: Path, settings: Path | None) -> argparse.Namespace:
    return argparse.Namespace(state=path, settings=settings)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise NoWorkloadError(f"{path}: cannot be read: {error.strerror}; check the path") from None
    except UnicodeDecodeError as error:
        raise NoWorkloadError(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from None
