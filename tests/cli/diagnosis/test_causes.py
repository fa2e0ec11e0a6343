"""A symptom is not found beside its cause: which finding explains which."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import Final

import pytest

from cli.diagnosis.checks import CHECKS, diagnose
from cli.diagnosis.finding import FindingSeverity, FoundFault
from halfcard import names

from .planted import ADMISSION, AGENT, ALL, CERTS, EXTENDER, process, starting, stuck, unled, unserved

ORDER: Final = [*FindingSeverity]
BY_NAME: Final = {check.name: check for check in CHECKS}


def test_no_check_explains_itself_by_way_of_others() -> None:
    assert TopologicalSorter({check.name: check.unless for check in CHECKS}).static_order()
    assert len([*TopologicalSorter({check.name: check.unless for check in CHECKS}).static_order()]) == len(CHECKS)


def test_no_finding_is_explained_by_a_milder_one() -> None:
    """The exit code would otherwise hide it."""
    pairs = [(BY_NAME[cause], check) for check in CHECKS for cause in check.unless]
    milder = [(a.name, b.name) for a, b in pairs if ORDER.index(a.severity) > ORDER.index(b.severity)]
    assert milder == []


ABOUT: Final[list[tuple[str, str, Sequence[str], bool]]] = [
    (ADMISSION, ADMISSION, (), True),
    (ADMISSION, EXTENDER, (), False),
    ("", EXTENDER, (), True),
    (ADMISSION, "", (), True),
    (AGENT, f"{AGENT}/gpu-1", (), True),
    (f"{AGENT}/gpu-1", f"{AGENT}/gpu-1", (), True),
    (f"{AGENT}/gpu-2", f"{AGENT}/gpu-1", (), False),
    (f"{AGENT}/gpu-2", f"{AGENT}/gpu-21", (), False),
    (names.CERTS_SERVICE, ADMISSION, (names.CERTS_SERVICE,), True),
    (ADMISSION, ADMISSION, (names.CERTS_SERVICE,), False),
]


@pytest.mark.parametrize(("cause", "about", "by", "expected"), ABOUT)
def test_a_fault_of_one_process_explains_nothing_about_another_one(
    cause: str, about: str, by: Sequence[str], *, expected: bool
) -> None:
    fault = FoundFault("w", "g", "f", about=cause)
    assert fault.may_explain(FoundFault("w", "g", "f", about=about, by=tuple(by))) is expected


def test_two_causes_are_both_found_and_each_explains_its_own_symptoms() -> None:
    webhook = stuck(ADMISSION, of=ALL, waits="ErrImagePull")
    both = unled(unserved(stuck(EXTENDER, of=webhook, waits="CrashLoopBackOff", restarts=2, exit_code=3)))
    found = diagnose(both)
    assert [each.check for each in found.findings] == ["image-missing", "process-crashes"]
    causes = {each.check: each.cause for each in found.consequences}
    assert causes == {"webhook-unreachable": "image-missing", "extender-not-led": "process-crashes"} | {
        "service-empty": causes["service-empty"]
    }


def test_the_named_cause_is_the_first_one_of_a_chain() -> None:
    found = diagnose(unserved(stuck(ADMISSION, waits="ErrImagePull")))
    assert {each.cause for each in found.consequences} == {"image-missing"}
    assert [a.check for a, b in pairwise(found.findings) if a == b] == []


def test_a_webhook_that_waits_for_its_secrets_is_explained_by_the_missing_image_of_what_makes_them() -> None:
    missing = stuck(CERTS, of=ALL, waits="ErrImageNeverPull")
    found = diagnose(unserved(process(ADMISSION, starting(ADMISSION), of=missing)))
    assert [each.check for each in found.findings] == ["image-missing"]
    assert ("process-starting", "image-missing") in [(each.check, each.cause) for each in found.consequences]
