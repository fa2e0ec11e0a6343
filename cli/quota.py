"""`halfcard quota explain NAMESPACE`: what is allowed there, what is used and by whom, and whether a pod would fit."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import msgspec

from halfcard import names
from halfcard.budget_words import amount, exceeded
from halfcard.budgets import Budget, OddBudget, read_amounts, read_budget
from halfcard.charges import COUNTED
from halfcard.columns import columns
from halfcard.ledger import Amounts, Shortage
from kube.access import Access, AccessError
from kube.calls import Answer, ApiCalls, NoAnswerError

from .cluster_state import NoClusterError, add_access_arguments, find_access
from .exits import EXIT_OK, EXIT_REFUSED, EXIT_USAGE
from .terminal import Colour, Screen

_HEADS: Final = ("", "USED", "ALLOWED", "FREE")
_UNLIMITED: Final = "-"

Object = Mapping[str, Any]


class Told(NamedTuple):
    """One quota, and what its status says."""

    budget: Budget
    used: Amounts
    status: Object

    def shortages(self, charge: Amounts) -> list[Shortage]:
        found = [Shortage(key, charge.get(key, 0), self.used[key], hard) for key, hard in self._hard().items()]
        return [each for each in found if each.wanted > 0 and each.missing > 0]

    def _hard(self) -> Amounts:
        return {key: self.budget.hard[key] for key in COUNTED if key in self.budget.hard}

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": self.budget.kind,
            "name": self.budget.title,
            "hard": self.budget.hard,
            "used": self.used,
            "free": {key: max(hard - self.used[key], 0) for key, hard in self._hard().items()},
            **{
                key: self.status[key]
                for key in ("pods", "promised", "late", "holders", "conditions")
                if key in self.status
            },
        }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    explain = commands.add_parser("explain", help=__doc__.partition(": ")[2].rstrip(".\n") if __doc__ else "")
    explain.add_argument("namespace", metavar="NAMESPACE")
    explain.add_argument(
        "--pod",
        type=_charge,
        metavar="AMOUNTS",
        help="would this be stored? such as cores=30,memory=5Gi,shares=1; the exit code is 1 where it would not",
    )
    add_access_arguments(explain)
    explain.add_argument("-o", "--output", choices=("text", "json"), default="text")


def _charge(text: str) -> Amounts:
    try:
        return read_amounts(dict(pair.split("=", 1) for pair in text.split(",")))
    except ValueError:
        example = "cores=30,memory=5Gi,shares=1"
        raise argparse.ArgumentTypeError(f"got {text!r}; amounts of {', '.join(COUNTED)}, such as {example}") from None


def run(arguments: argparse.Namespace) -> int:
    try:
        told, problems = _ask(find_access(arguments), arguments.namespace)
    except (AccessError, NoClusterError) as error:
        print(f"halfcard quota: {error}", file=sys.stderr)
        return EXIT_USAGE
    refused = [_refusal(each, arguments.pod) for each in told if arguments.pod and each.shortages(arguments.pod)]
    if arguments.output == "json":
        pod = {} if arguments.pod is None else {"pod": {"charge": arguments.pod, "refused": refused}}
        found = {"namespace": arguments.namespace, "quotas": [each.as_json() for each in told], **pod}
        print(json.dumps({**found, "problems": problems}, indent=2, ensure_ascii=False))
    else:
        _print(Screen.on(sys.stdout), arguments, told, refused, problems)
    return EXIT_REFUSED if refused else EXIT_OK


def _refusal(told: Told, charge: Amounts) -> str:
    return exceeded(told.budget.title, told.shortages(charge))


# --- asking ----------------------------------------------------------------------------------------------------------


def _ask(access: Access, namespace: str) -> tuple[list[Told], list[str]]:
    return asyncio.run(_asked(access, namespace))


async def _asked(access: Access, namespace: str) -> tuple[list[Told], list[str]]:
    calls = ApiCalls(access)
    try:
        space = await _get(calls, f"/api/v1/namespaces/{quote(namespace, safe='')}")
        own = await _get(calls, f"{names.QUOTA_API}/namespaces/{namespace}/{names.GPU_QUOTAS}")
        shared, problems = await _shared(calls)
    except NoAnswerError as error:
        raise NoClusterError(str(error)) from error
    finally:
        calls.close()
    labels = space["metadata"].get("labels") or {}
    read = [(read_budget(each), each.get("status") or {}) for each in (*own["items"], *shared)]
    told = [Told(budget, _used(status), status) for budget, status in read if isinstance(budget, Budget)]
    odd = [str(budget) for budget, _ in read if isinstance(budget, OddBudget)]
    return [each for each in told if each.budget.concerns(namespace, labels)], [*problems, *odd]


async def _shared(calls: ApiCalls) -> tuple[list[Object], list[str]]:
    """Those of a namespace see its own quotas, and not always those that it shares with others."""
    answer = await calls.get(f"{names.QUOTA_API}/{names.CLUSTER_GPU_QUOTAS}")
    if answer.status == HTTPStatus.FORBIDDEN:
        return [], [f"quotas that it shares with other namespaces are not shown: {answer.message()}"]
    return _decoded(answer, names.CLUSTER_GPU_QUOTAS)["items"], []


async def _get(calls: ApiCalls, path: str) -> Object:
    return _decoded(await calls.get(path), path)


def _decoded(answer: Answer, what: str) -> Object:
    if answer.status != HTTPStatus.OK:
        raise NoClusterError(f"the API server answered {answer.status} to GET {what}: {answer.message()}")
    found: Object = msgspec.json.decode(answer.body)
    return found


def _used(status: Object) -> Amounts:
    """What nobody has counted yet is shown as 0, beside the condition that says so."""
    written = {key: str(status.get(key, "0/-")).partition("/")[0] for key in COUNTED}
    return read_amounts(written)


# --- printing --------------------------------------------------------------------------------------------------------


def _print(
    screen: Screen, arguments: argparse.Namespace, told: Sequence[Told], refused: Sequence[str], problems: Iterable[str]
) -> None:
    if not told:
        kinds = f"no {names.GPU_QUOTA} and no {names.CLUSTER_GPU_QUOTA}"
        screen.line(f"{kinds} concerns namespace {arguments.namespace}")
    for each in told:
        _print_quota(screen, each)
    for problem in problems:
        screen.wrapped(problem, indent="", hanging="  ", colour=Colour.YELLOW)
    if arguments.pod is None:
        return
    for words in refused:
        screen.wrapped(f"a pod like this would be refused: {words}", indent="", hanging="  ", colour=Colour.RED)
    if not refused:
        screen.line(screen.paint("a pod like this would be stored", Colour.GREEN))


def _print_quota(screen: Screen, told: Told) -> None:
    screen.line(screen.paint(f"{told.budget.kind} {told.budget.title}", Colour.BOLD))
    for line in columns([_HEADS, *[_row(told, key) for key in COUNTED]], right=(1, 2, 3)):
        screen.line(f"  {line}")
    for each in told.status.get("perLabel") or ():
        screen.line(f"  {each['key']}: {each['amount']}")
    for each in told.status.get("holders") or ():
        amounts = " ".join(f"{key}={each[key]}" for key in COUNTED if key in each)
        screen.line(f"  {each['pod']} holds {amounts}")
    for said in _remarks(told.status):
        screen.wrapped(said, indent="  ", hanging="  ", colour=Colour.YELLOW)
    screen.line()


def _row(told: Told, key: str) -> tuple[str, ...]:
    used, hard = told.used[key], told.budget.hard.get(key)
    if hard is None:
        return key, amount(key, used), _UNLIMITED, _UNLIMITED
    return key, amount(key, used), amount(key, hard), amount(key, max(hard - used, 0))


def _remarks(status: Object) -> Iterable[str]:
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    if conditions.get("Ready", {}).get("status") != "True":
        yield "nobody has counted yet what is in use: new pods have to wait; is the quota service running?"
    if conditions.get("Exceeded", {}).get("status") == "True":
        yield str(conditions["Exceeded"]["message"])
    if status.get("promised"):
        yield f"{status['promised']} pods are about to be stored, and counted already"
    if status.get("late"):
        yield f"{status['late']} pods came past the quota while there was too little left"
