"""`halfcard scheduler-config`: prints the configuration with which the cluster's kube-scheduler calls Halfcard."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Final

import yaml

from extender.scheduler_api.configuration_file import (
    EXAMPLE_HOST,
    FOLDER,
    ConfigurationParts,
    configuration,
    extender_url,
    managed_resources,
    profile,
    resource_lines,
)
from halfcard import names
from halfcard.exit_codes import EXIT_OK, UnusableInputError
from settings.installation import Settings
from settings.settings_file import load_settings

from ..diagnosis.nodes.node_versions import NEWEST_TESTED, OLDEST, MinorVersion, minor_version
from ..inputs.cluster_state import add_access_arguments, ask
from ..output.structured import YAML
from .installation import SchedulersInstallation, read_installation

_STEPS: Final = """\
# For kube-scheduler {version}, as {folder}/scheduler.yaml on each machine with one, beside ca.crt, tls.crt and
# tls.key: deploy/scheduler/copy-certificate.sh copies them, daily. In the manifest of the scheduler's static pod:
#   command:       - --config={folder}/scheduler.yaml   # its flags --kubeconfig and --leader-elect then have no effect
#   volumeMounts:  - {{name: halfcard, mountPath: {folder}, readOnly: true}}
#   volumes:       - {{name: halfcard, hostPath: {{path: {folder}, type: Directory}}}}
"""
_UNKNOWN_HOST: Final = f"""\
# Replace {EXAMPLE_HOST} by the clusterIP of the Service {names.NAMESPACE}/{names.EXTENDER_SERVICE}.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kubernetes",
        type=_version,
        metavar="VERSION",
        help="print it for this version, such as 1.35, and ask no cluster (default: the version of the cluster)",
    )
    parser.add_argument("--settings", type=Path, metavar="FILE", help="default: those of the cluster")
    parser.add_argument(
        "-o", "--output", choices=(YAML, "json"), default=YAML, help="(default %(default)s, with comments)"
    )
    add_access_arguments(parser)


def _version(text: str) -> MinorVersion:
    read = minor_version(f"v{text.removeprefix('v')}")
    if read is None:
        raise argparse.ArgumentTypeError(f'got "{text}"; a version of Kubernetes, such as {NEWEST_TESTED}')
    return read


def run(arguments: argparse.Namespace) -> int:
    own = None if arguments.settings is None else load_settings(arguments.settings)
    if arguments.kubernetes is None:
        found = ask(arguments, lambda calls: read_installation(calls, own))
    else:
        found = SchedulersInstallation(arguments.kubernetes, EXAMPLE_HOST, own or Settings())
    _check(found.version)
    text = configuration_for(found.settings, found.host)
    if arguments.output == YAML:
        note = _UNKNOWN_HOST if found.host == EXAMPLE_HOST else ""
        print(f"{_STEPS.format(version=found.version, folder=FOLDER)}{note}{text}", end="")
    else:
        print(json.dumps(yaml.safe_load(text), indent=2))
    return EXIT_OK


def configuration_for(settings: Settings, host: str) -> str:
    """Returns the configuration of a scheduler that is not the chart's own."""
    schedulers = settings.served_schedulers() - {names.SCHEDULER} or {names.DEFAULT_SCHEDULER}
    resources = resource_lines(managed_resources(settings.enabled_dialects().table))
    return configuration(ConfigurationParts("".join(map(profile, sorted(schedulers))), resources, extender_url(host)))


def _check(version: MinorVersion) -> None:
    if version < OLDEST:
        raise UnusableInputError(f"Kubernetes {version} is too old: Halfcard needs {OLDEST} or newer")
    if version > NEWEST_TESTED:
        untested = f"not tested with Kubernetes {version}, only up to {NEWEST_TESTED}"
        print(f"halfcard scheduler-config: {untested}", file=sys.stderr)
