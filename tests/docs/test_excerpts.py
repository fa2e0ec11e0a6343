"""Names the test of every page that quotes messages or outputs, and checks the refusals on the quota page."""

from __future__ import annotations

from typing import Final

from halfcard import names
from halfcard.dialects import Dialects
from halfcard.quantity import Quantity
from halfcard.quota.budget_messages import exceeded
from halfcard.quota.ledger import Shortage
from halfcard.quota.native_messages import exceeded_message, units
from halfcard.quota.native_quota import ExceededQuota, Shortfall

from .pages import ROOT, all_fences, fences

COMPARED: Final = {
    "certificates.md": "tests/cli/test_certs.py",
    "doctor.md": "tests/cli/test_doctor.py",
    "inspect.md": "tests/cli/test_explain.py",
    "install.md": "tests/cluster/helm.py",
    "platforms.md": "tests/deploy/test_platforms.py",
    "quota.md": "tests/docs/test_excerpts.py",
    "top.md": "tests/cli/test_top.py",
}
"""The test that compares the `text` fences of a page; generated ones, such as those of limits.md, need none."""


def test_every_page_with_excerpts_has_a_test_that_names_it() -> None:
    generated = {"limits.md"}
    assert {fence.page.name for fence in all_fences("text")} - generated <= set(COMPARED)
    assert [page for page, test in COMPARED.items() if f'"{page}"' not in (ROOT / test).read_text()] == []


def test_the_quota_page_shows_the_real_refusals() -> None:
    shown = [" ".join(fence.text.split()) for fence in fences(ROOT / "docs" / "quota.md") if fence.language == "text"]
    native = Shortfall(names.VCUDA_CORE, *map(Quantity.parse, ("30", "80", "100")))
    refusals = [
        exceeded("team-a/gpu", [Shortage("cores", 30, 80, 100)]),
        exceeded_message([ExceededQuota("team-a/gpu", (native,))], units(Dialects(), None)),
    ]
    assert [text for text in shown if text.startswith("exceeded quota")] == refusals
