"""`halfcard quota explain NAMESPACE`: what is allowed there, what is used and by which pods, and whether a pod would
fit.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from admission.policy import AdmissionPolicy
from admission.policy_settings import policy_of
from halfcard import names
from halfcard.exit_codes import EXIT_OK, EXIT_REFUSED
from halfcard.quota.budget_messages import amount, exceeded
from halfcard.quota.charge import COUNTED
from halfcard.quota.gpu_quota import read_amounts
from halfcard.quota.ledger import Amounts
from halfcard.quota.native_messages import units
from kube.api.calls import ApiCalls
from kube.quota.native_quota_source import quotas_anywhere
from settings.settings_file import load_settings

from .inputs.cluster_state import add_access_arguments, ask, default_namespace
from .inputs.namespace_choice import add_namespace_arguments
from .output.structured import TEXT, add_output_argument, print_document
from .output.terminal import Colour, Screen
from .quota_commands import gpu_quotas, import_map, native_explain, repair, report, revert
from .quota_commands.gpu_quotas import QuotaAnswer
from .quota_commands.hanging_pods import hanging_pods

_HEADS: Final = ("", "USED", "ALLOWED", "FREE")
_UNLIMITED: Final = "-"
_SUMMARY: Final = "what is allowed in a namespace, what is used and by which pods, and whether a pod would fit"

Object = Mapping[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    explain = _command(commands, "explain", _SUMMARY)
    add_namespace_arguments(explain, "default: the namespace of the context", positional=True)
    explain.add_argument(
        "--pod",
        type=_charge,
        metavar="AMOUNTS",
        help="would such a pod be stored? such as cores=30,memory=5Gi,shares=1; exit code 1 if not",
    )
    add_access_arguments(explain)
    explain.add_argument("--settings", type=Path, metavar="FILE", help="the installation's settings")
    add_output_argument(explain)
    explain.set_defaults(does=_explain)
    others = {"report": report, "import": import_map, "repair": repair, "revert": revert}
    for name, module in others.items():
        module.add_arguments(_command(commands, name, module.SUMMARY))


def _command(commands: Any, name: str, summary: str) -> argparse.ArgumentParser:
    described = f"{summary[0].upper()}{summary[1:]}."
    made: argparse.ArgumentParser = commands.add_parser(name, help=summary, description=described)
    return made


def _charge(text: str) -> Amounts:
    try:
        return read_amounts(dict(pair.split("=", 1) for pair in text.split(",")))
    except ValueError:
        example = "cores=30,memory=5Gi,shares=1"
        raise argparse.ArgumentTypeError(f"got {text!r}; amounts of {', '.join(COUNTED)}, such as {example}") from None


def run(arguments: argparse.Namespace) -> int:
    code: int = arguments.does(arguments)
    return code


def _explain(arguments: argparse.Namespace) -> int:
    policy = policy_of(load_settings(arguments.settings))
    if arguments.all_namespaces:
        found = ask(arguments, lambda calls: _read_everywhere(calls, policy))
    else:
        namespace = arguments.namespace or default_namespace(arguments)
        found = [ask(arguments, lambda calls: _read_quotas(calls, namespace, policy))]
    answers = [_Answer([], []) if arguments.pod is None else _answer(each, arguments.pod, policy) for each in found]
    if arguments.output != TEXT:
        documents = [
            _document(each, arguments.pod, answer, policy) for each, answer in zip(found, answers, strict=True)
        ]
        print_document(arguments.output, {"namespaces": documents} if arguments.all_namespaces else documents[0])
    else:
        for each, answer in zip(found, answers, strict=True):
            _print(Screen.on(sys.stdout), arguments, each, answer, policy.counted)
    return EXIT_REFUSED if any(answer.refused for answer in answers) else EXIT_OK


def _document(found: Found, charge: Amounts | None, answer: _Answer, policy: AdmissionPolicy) -> Object:
    return {
        "namespace": found.namespace,
        "quotas": [each.as_json() for each in found.answers],
        "native": native_explain.as_json(found.native, policy.counted),
        **({} if charge is None else {"pod": {"charge": charge, **answer._asdict()}}),
        "hanging": found.hanging,
        "problems": found.problems,
    }


class _Answer(NamedTuple):
    """The answer for a pod: it is stored if no quota refuses it, and may still wait."""

    refused: list[str]
    waits: list[str]


def _answer(found: Found, charge: Amounts, policy: AdmissionPolicy) -> _Answer:
    short = [(each.budget, shortages) for each in found.answers if (shortages := each.shortages(charge))]
    refused = [exceeded(budget.title, shortages) for budget, shortages in short if not budget.gates]
    waits = [exceeded(budget.title, shortages) for budget, shortages in short if budget.gates]
    return _Answer(
        [*refused, *native_explain.refusals(found.native, charge, units(policy.dialects, policy.derived))], waits
    )


# --- asking ----------------------------------------------------------------------------------------------------------


class Found(NamedTuple):
    """All quotas that concern one namespace."""

    namespace: str
    answers: list[QuotaAnswer]
    native: native_explain.NativeQuotaAnswer
    problems: list[str]
    hanging: list[str]


async def _read_quotas(calls: ApiCalls, namespace: str, policy: AdmissionPolicy) -> Found:
    answers, problems = await gpu_quotas.concerning(calls, namespace)
    native = await native_explain.ask(calls, namespace, policy.counted)
    hanging = await hanging_pods(calls, namespace, policy.dialects, time.time()) if answers else []
    return Found(namespace, answers, native, [*problems, *native.problems], hanging)


async def _read_everywhere(calls: ApiCalls, policy: AdmissionPolicy) -> list[Found]:
    """Reads the quotas of each namespace that has quotas of its own."""
    native = {each.meta.namespace or "" for each in await quotas_anywhere(calls) if each.names(policy.counted)}
    return [await _read_quotas(calls, each, policy) for each in sorted(native | await gpu_quotas.namespaces(calls))]


# --- printing --------------------------------------------------------------------------------------------------------


def _print(
    screen: Screen, arguments: argparse.Namespace, found: Found, answer: _Answer, resources: frozenset[str]
) -> None:
    if not found.answers and not found.native.quotas:
        kinds = f"no {names.GPU_QUOTA}, no {names.CLUSTER_GPU_QUOTA} and no ResourceQuota of GPUs"
        screen.line(f"{kinds} concerns namespace {found.namespace}")
    for each in found.answers:
        _print_quota(screen, each)
    native_explain.show(screen, found.native, resources)
    for problem in (*found.hanging, *found.problems):
        screen.wrapped(problem, indent="", hanging="  ", colour=Colour.YELLOW)
    if arguments.pod is None:
        return
    for words in answer.refused:
        screen.wrapped(f"a pod like this would be refused: {words}", indent="", hanging="  ", colour=Colour.RED)
    for words in answer.waits:
        screen.wrapped(f"a pod like this would wait: {words}", indent="", hanging="  ", colour=Colour.YELLOW)
    if not any(answer):
        screen.line(screen.paint("a pod like this would be stored", Colour.GREEN))


def _print_quota(screen: Screen, answer: QuotaAnswer) -> None:
    screen.line(screen.paint(f"{answer.budget.kind} {answer.budget.title}", Colour.BOLD))
    screen.table([_HEADS, *[_row(answer, key) for key in COUNTED]], right=(1, 2, 3), indent="  ")
    if answer.status.get("counts") == "Together":
        screen.line(f"  this namespace uses {_amounts(answer.status['here'])}")
    for each in answer.status.get("places") or ():
        screen.line(f"  {each['place']}: {_amounts(each)}")
    for each in answer.status.get("perLabel") or ():
        screen.line(f"  {each['key']}: {each['amount']}")
    for each in answer.status.get("borrowed") or ():
        screen.line(f"  borrows {_amounts(each)} from {each['quota']}, which is among ALLOWED")
    for each in answer.status.get("lent") or ():
        screen.line(f"  lends {_amounts(each)} to {each['quota']}, which is no longer among ALLOWED")
    for each in answer.status.get("holders") or ():
        screen.line(f"  {each['pod']} holds {_amounts(each)}")
    for remark in _remarks(answer.status):
        screen.wrapped(remark, indent="  ", hanging="  ", colour=Colour.YELLOW)
    for place, row in enumerate(answer.status.get("queue") or (), 1):
        screen.wrapped(_waiting(place, row), indent="  ", hanging="     ")
    screen.line()


def _row(answer: QuotaAnswer, key: str) -> tuple[str, ...]:
    used, hard = answer.used[key], answer.allowed().get(key)
    if hard is None:
        return key, amount(key, used), _UNLIMITED, _UNLIMITED
    return key, amount(key, used), amount(key, hard), amount(key, max(hard - used, 0))


def _amounts(written: Mapping[str, str]) -> str:
    return " ".join(f"{key}={written[key]}" for key in COUNTED if key in written)


def _waiting(place: int, row: Mapping[str, str]) -> str:
    """Says who waits at this place of the queue, and for what."""
    parts = [f"is behind {row['behind']}"] if "behind" in row else []
    parts += [f"lacks {row['lacks']}"] if "lacks" in row else []
    parts += [row["why"]] if "why" in row else []
    return f"{place}. {row['pod']}: {', and '.join(parts)}"


def _remarks(status: Object) -> Iterable[str]:
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    if conditions.get("Ready", {}).get("status") != "True":
        yield "its usage is not counted yet: new pods have to wait; is the quota service running?"
    if conditions.get("Exceeded", {}).get("status") == "True":
        yield str(conditions["Exceeded"]["message"])
    if "Exempt" in conditions:
        yield str(conditions["Exempt"]["message"])
    if status.get("promised"):
        yield f"{status['promised']} pods are reserved and not stored yet"
    if status.get("waiting"):
        yield f"{status['waiting']} pods wait with the scheduling gate until there is room"
    if status.get("late"):
        yield f"{status['late']} pods were created without the webhook while too little was left"
