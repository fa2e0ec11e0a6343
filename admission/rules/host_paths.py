"""The rule about folders and files of the node that a pod mounts, by the table of `halfcard.node_folders`."""

from __future__ import annotations

from collections.abc import Iterator

from halfcard.node_folders import leads_to_cards
from halfcard.problems import HOST_PATH, Problem

from .subject import Subject


def host_paths_are_allowed(subject: Subject) -> Iterator[Problem]:
    policy, spec = subject.context.policy, subject.pod.spec
    if spec is None or policy.is_system_workload(subject.context.namespace, spec.service_account_name):
        return
    for number, volume in enumerate(spec.volumes or ()):
        if volume.host_path is not None and leads_to_cards(volume.host_path.path, allowed=policy.host_paths):
            where = f"spec.volumes[{number}].hostPath.path"
            yield HOST_PATH.broken(where, volume.host_path.path, "mount a folder of data, and ask for GPU in resources")
