"""What the pages quote of messages and outputs is what the code says; a test is named for every page that quotes."""

from __future__ import annotations

from typing import Final

from halfcard import names
from halfcard.dialects import Dialects
from halfcard.quantity import Quantity
from halfcard.quota.budget_messages import exceeded
from halfcard.quota.ledger import Shortage
from halfcard.quota.native_messages import told, units
from halfcard.quota.native_quota import ExceededQuota, Shortfall

from .pages import ROOT, all_fences, fences

COMPARED: Final = {
    "certificates.md": "tests/cli/test_certs.py",
    "doctor.md": "tests/cli/test_doctor.py",
    "install.md": "tests/cluster/helm.py",
    "quota.md": "tests/docs/test_excerpts.py",
    "top.md": "tests/cli/test_top.py",
}
"""Beside what is generated, as in limits.md; the installation's commands are found there by their words, and typed."""


def test_every_excerpt_is_compared_by_a_test_that_names_its_page() -> None:
    made = {"limits.md"}
    assert {fence.page.name for fence in all_fences("text")} - made <= set(COMPARED)
    assert [page for page, test in COMPARED.items() if f'"{page}"' not in (ROOT / test).read_text()] == []


def test_the_refusals_of_the_quota_page_are_those_that_people_get() -> None:
    shown = [" ".join(fence.text.split()) for fence in fences(ROOT / "docs" / "quota.md") if fence.language == "text"]
    native = Shortfall(names.VCUDA_CORE, *map(Quantity.parse, ("30", "80", "100")))
    refusals = [
        exceeded("team-a/gpu", [Shortage("cores", 30, 80, 100)]),
        told([ExceededQuota("team-a/gpu", (native,))], units(Dialects(), None)),
    ]
    assert [text for text in shown if text.startswith("exceeded quota")] == refusals
