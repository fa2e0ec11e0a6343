"""What the message of each mistake advises is accepted when it is tried: every rule, warnings included."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

import pytest

from admission.policy import AdmissionPolicy
from cli.judge import Judge
from halfcard import names
from halfcard.dialects import Dialects
from halfcard.patches import Pointer, from_field_path, value_at
from halfcard.problems import RULES, Problem, Severity
from kube.manifests.documents import files_below, read_file
from kube.manifests.folder_source import FolderSource

from .examples import ROOT

Object = dict[str, Any]
FOLDER: Final = ROOT / "mistakes"
POLICY: Final = replace(AdmissionPolicy(), severities=dict.fromkeys(RULES, Severity.DENY))
JUDGE: Final = Judge(POLICY, FolderSource(FOLDER / "state").view())
MISTAKES: Final = {
    f"{document.source_file}:{document.line}": document.obj
    for path in files_below(FOLDER / "manifests")
    for document in read_file(path)
}


class Mistake(NamedTuple):
    """One problem of a manifest."""

    obj: Object
    problem: Problem

    @property
    def where(self) -> Pointer:
        return from_field_path(self.problem.where)

    @property
    def resources(self) -> Pointer:
        """The resources of the container that the problem is in, of the first one otherwise."""
        where = self.where
        return where[: where.index("resources") + 1] if "resources" in where else ("spec", "containers", 0, "resources")

    @property
    def limited(self) -> Object:
        found: Object = value_at(self.obj, (*self.resources, "limits"))
        return found

    def with_value(self, value: Any, where: Pointer | None = None) -> Object:
        obj, (*parents, last) = copy.deepcopy(self.obj), where or self.where
        value_at(obj, tuple(parents))[last] = value
        return obj

    def without(self, where: Pointer | None = None) -> Object:
        obj, (*parents, last) = copy.deepcopy(self.obj), where or self.where
        del value_at(obj, tuple(parents))[last]
        return obj

    def limits(self, keep: Callable[[str], bool] = lambda _: True, **more: Any) -> Object:
        """The object with other limits, and without requests."""
        kept = {key: amount for key, amount in self.limited.items() if keep(key)}
        return self.with_value({"limits": kept | more}, self.resources)


Ways = Callable[..., list[Object]]


def each_of(separator: str) -> Ways:
    return lambda mistake, values: [mistake.with_value(value) for value in values.split(separator)]


def dialects(mistake: Mistake, *kept: str) -> list[Object]:
    return [mistake.limits(lambda key, dialect=name: key in Dialects().by_name[dialect].resources) for name in kept]  # type: ignore[misc]


def one_dialect(mistake: Mistake, dialect: str) -> list[Object]:
    theirs = Dialects().by_name[dialect].examples[0]
    spec = mistake.obj["spec"]
    same = [{**each, "resources": {"limits": dict(theirs)}} for each in spec["containers"]]
    return [mistake.with_value(each, ("spec", "containers")) for each in (same, *[[one] for one in spec["containers"]])]


SHARE: Final = {names.VCUDA_CORE: 30, names.VCUDA_MEMORY: 20}
WHOLE: Final = {names.VCUDA_CORE: 100}
WAYS: Final[dict[str, Ways]] = {
    r"use (\d+), with (\S+): (\d+) and (\S+) in MiB .*": lambda mistake, one, cores, part, memory: [
        mistake.with_value(one),
        mistake.limits(**{names.NVIDIA_GPU: one, cores: part, memory: 1024}),
    ],
    r"use (\d+), or a suffix such as (\S+)": lambda mistake, number, suffix: [
        mistake.with_value(number),
        mistake.with_value(f"{mistake.problem.got}{suffix}"),
    ],
    r"write digits, or a suffix .*, such as (\S+)": lambda mistake, suffix: [
        mistake.with_value(re.sub(r"\D", "", f"{mistake.problem.got}") + end) for end in ("", suffix)
    ],
    r"use at most \d+ MiB a card \((\d+) units of .*\)": lambda mistake, units: [
        mistake.limits(**{names.VCUDA_MEMORY: units})
    ],
    r"use at most (\d+) in a pod, or .*": lambda mistake, cards: [mistake.limits(**{names.NVIDIA_GPU: cards})],
    r"use at most (\d+)": each_of(" or "),
    r"use nodeSelector or affinity": lambda mistake: [mistake.without()],
    r"use (\d+-\d+), or remove it": lambda mistake, range_: [
        *each_of("-")(mistake, range_),
        mistake.without(),
    ],
    r"use the resources of (\S+) in all containers, or two pods": one_dialect,
    r"use (\S+(?: or \S+)*)": each_of(" or "),
    r"(?:write|add) (\w+)": lambda mistake, word: [mistake.with_value({} if word == "object" else word)],
    r"add (\S+), such as (\S+) or (\d+) .*": lambda mistake, name, *amounts: [
        mistake.limits(**{name: amount}) for amount in amounts
    ],
    r"add (\S+): (\d+)-(\d+) .*": lambda mistake, name, *amounts: [
        mistake.limits(**{name: amount}) for amount in amounts
    ],
    r"write the same in both, or leave requests out": lambda mistake: [
        mistake.with_value(dict.fromkeys(("limits", "requests"), mistake.limited), mistake.resources),
        mistake.limits(),
    ],
    r"keep the resources of (\S+) or of (\S+)": dialects,
    r"keep (\S+) .*or (\S+)": lambda mistake, one, other: [
        mistake.limits(lambda key: key != dropped)  # noqa: B023  (called at once)
        for dropped in (one, other)
    ],
    r"remove it, or ask for whole cards": lambda mistake: [
        mistake.without(),
        mistake.with_value({"limits": WHOLE}, mistake.resources),
    ],
    r"remove it(?:, and ask for GPU in resources| if .*)?": lambda mistake: [mistake.without()],
    r"remove the key from the ConfigMap, or list the keys you need under env": lambda mistake: [mistake.without()],
    r"mount a folder of data, and ask for GPU in resources": lambda mistake: [mistake.with_value("/data")],
    r"ask for (?:a share or for cards in other|GPU in) resources": lambda mistake: [
        Mistake(mistake.without(), mistake.problem).with_value({"limits": amounts}, mistake.resources)
        for amounts in (SHARE, {names.NVIDIA_GPU: 1})
    ],
    r"(\d+) cards are (\d+)": lambda mistake, _, amount: [mistake.with_value(amount)],
    r"\S+ is for Volcano; use (\S+), in MiB": lambda mistake, name: [
        mistake.with_value({"limits": {name: 2048}}, mistake.resources)
    ],
    r"gpu-fraction is for KAI Scheduler; request resources.*": lambda mistake: [
        Mistake(mistake.without(), mistake.problem).with_value({"limits": SHARE}, mistake.resources)
    ],
}


def problems(obj: Object) -> tuple[Problem, ...]:
    return JUDGE.review(obj).verdict.problems


def tried(mistake: Mistake) -> Iterator[Object]:
    """Yields the manifest after each way that the fix offers."""
    found = next((match, ways) for text, ways in WAYS.items() if (match := re.fullmatch(text, mistake.problem.fix)))
    yield from found[1](mistake, *found[0].groups())


@pytest.mark.parametrize("obj", MISTAKES.values(), ids=MISTAKES)
def test_each_way_that_a_message_offers_is_accepted(obj: Object) -> None:
    before = problems(obj)
    for problem in before:
        others = {(each.code, each.where) for each in before} - {(problem.code, problem.where)}
        after = [{(each.code, each.where) for each in problems(way)} - others for way in tried(Mistake(obj, problem))]
        assert after, problem
        assert [found for found in after if refusing(found) or (problem.code, problem.where) in found] == [], problem


def refusing(found: set[tuple[str, str]]) -> list[str]:
    return [code for code, _ in found if RULES[code].severity is Severity.DENY]
