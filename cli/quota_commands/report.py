"""`halfcard quota report`: the current usage of the cluster's cards, by namespace or by a label of pods.

It counts pods, not quotas: it includes teams without a quota.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from halfcard.columns import columns
from halfcard.dialects import Dialects
from halfcard.exit_codes import EXIT_OK
from halfcard.placing.demand import needs_of
from halfcard.pod.requests import read_pod
from halfcard.pod.stored_pod import StoredPod
from halfcard.quota.budget_messages import amount
from halfcard.quota.charge import COUNTED, charge
from settings.settings_file import load_settings

from ..inputs.cluster_state import add_access_arguments, everything, find_access, pods_path
from ..inputs.namespace_choice import add_namespace_arguments
from ..output.structured import TEXT, add_output_argument, print_document

SUMMARY: Final = "the current usage of the cluster's cards, by team"
_NOBODY: Final = "-"


class TeamUsage(NamedTuple):
    """The usage of one team.

    Attributes:
        waiting: pods without a node, which are among the `pods`.
    """

    team: str
    pods: int
    waiting: int
    charged: Counter[str]

    def as_json(self) -> dict[str, Any]:
        amounts = {key: self.charged[key] for key in COUNTED}
        return {"team": self.team, "pods": self.pods, "waiting": self.waiting, **amounts}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--by", metavar="LABEL", help="the label of pods whose values are the teams (default: their namespaces)"
    )
    add_namespace_arguments(parser, "only its pods (default: all namespaces)")
    add_access_arguments(parser)
    parser.add_argument("--settings", type=Path, metavar="FILE", help="the installation's settings")
    add_output_argument(parser)
    parser.set_defaults(does=run, title="halfcard quota report")


def run(arguments: argparse.Namespace) -> int:
    left_out: list[str] = []
    dialects = load_settings(arguments.settings).enabled_dialects()
    pods = everything(find_access(arguments), pods_path(arguments.namespace), StoredPod, left_out)
    found = usages(pods, dialects, _team_by(arguments.by))
    for problem in left_out:
        print(f"{arguments.title}: {problem}", file=sys.stderr)
    if arguments.output != TEXT:
        print_document(arguments.output, [each.as_json() for each in found])
    else:
        _print(found, "NAMESPACE" if arguments.by is None else arguments.by)
    return EXIT_OK


def _team_by(label: str | None) -> Callable[[StoredPod], str]:
    if label is None:
        return lambda pod: pod.meta.namespace or ""
    return lambda pod: pod.labels.get(label, _NOBODY)


def usages(pods: Iterable[StoredPod], dialects: Dialects, team_of: Callable[[StoredPod], str]) -> list[TeamUsage]:
    """Sums usage by team, the most cores first; pods that have ended use nothing."""
    by_team: defaultdict[str, list[tuple[StoredPod, Mapping[str, int]]]] = defaultdict(list)
    for pod in pods:
        charged = charge(needs_of(read_pod(pod, dialects))[1])
        if charged and not pod.is_over:
            by_team[team_of(pod)].append((pod, charged))
    found = [_usage(team, held) for team, held in by_team.items()]
    return sorted(found, key=lambda each: (*[-each.charged[key] for key in ("cores", *COUNTED)], each.team))


def _usage(team: str, held: Iterable[tuple[StoredPod, Mapping[str, int]]]) -> TeamUsage:
    pods, charges = zip(*held, strict=True)
    total: Counter[str] = Counter()
    for each in charges:
        total.update(each)
    return TeamUsage(team, len(pods), sum(not pod.node for pod in pods), total)


def _print(found: Iterable[TeamUsage], team: str) -> None:
    heads = (team, "PODS", "WAITING", *[key.upper() for key in COUNTED])
    rows = [
        (each.team, str(each.pods), str(each.waiting), *[amount(key, each.charged[key]) for key in COUNTED])
        for each in found
    ]
    for line in columns([heads, *rows], right=range(1, len(heads))):
        print(line)
