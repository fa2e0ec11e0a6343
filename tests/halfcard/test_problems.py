from __future__ import annotations

import re
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfcard import problems
from halfcard.problems import (
    CORES,
    ENV_WIDENS,
    MAX_MESSAGE_BYTES,
    MAX_WARNING_CHARS,
    QUANTITY,
    RULES,
    SHARE_NEEDS_MEMORY,
    Problem,
    Rule,
    as_warning,
    clipped,
    message,
    printable,
    warned,
    warning,
)

CODES: Final = {
    "HC001": "QUANTITY",
    "HC002": "CORES",
    "HC003": "MEMORY_UNITS",
    "HC004": "NOT_EQUAL",
    "HC005": "UNREPAIRED",
    "HC006": "SHARE_NEEDS_MEMORY",
    "HC007": "MEMORY_ALONE",
    "HC008": "MEMORY_TOO_LARGE",
    "HC009": "CORE_LIMIT",
    "HC010": "MIXED_CONTAINER",
    "HC011": "MIXED_POD",
    "HC012": "ONE_KIND",
    "HC013": "PER_CENT",
    "HC014": "POLICY",
    "HC015": "SLOTS",
    "HC016": "DERIVED",
    "HC017": "DEVICE_CLASS",
    "HC020": "OWNED",
    "HC021": "ENV_WIDENS",
    "HC022": "ENV_LOOSENS",
    "HC023": "ENV_FROM",
    "HC024": "HOST_PATH",
    "HC025": "PRIVILEGED_SHARE",
    "HC026": "NODE_NAME",
    "HC027": "DEVICE_LIST",
    "HC028": "QUOTA_GATE",
    "HC029": "UNHIDDEN",
    "HC030": "QUOTA_CORES",
    "HC031": "MALFORMED",
    "HC032": "UNREADABLE",
    "HC040": "WHOLE_MEMORY",
    "HC041": "CORE_LIMIT_IDLE",
    "HC042": "PRIVILEGED_WHOLE",
    "HC043": "SCHEDULER",
    "HC044": "SMALL_CORES",
    "HC045": "LIBRARY_PATH",
    "HC046": "RESOURCE_CLAIMS",
    "HC047": "FOREIGN",
    "HC048": "TOO_MANY_CARDS",
}
"""People search for these: a new rule gets a new code here, and no row ever changes or goes."""

# --- the table --------------------------------------------------------------------------------------------------------


def test_the_meaning_of_a_code_never_changes() -> None:
    table = {name: value for name, value in vars(problems).items() if isinstance(value, Rule)}
    assert sorted((rule.code, name) for name, rule in table.items()) == sorted(CODES.items())


def test_the_table_is_complete_and_in_the_order_of_its_codes() -> None:
    assert list(RULES) == sorted(CODES)
    assert all(rule.code == code for code, rule in RULES.items())


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_is_one_clause_and_has_a_reason(rule: Rule) -> None:
    assert re.fullmatch(r"HC\d{3}", rule.code)
    assert len(rule.text) <= MAX_WARNING_CHARS
    assert rule.text.isprintable() and not rule.text.endswith(".")
    assert rule.why.endswith(".") and "|" not in rule.text


# --- one problem ------------------------------------------------------------------------------------------------------


def test_a_problem_says_where_got_rule_fix_and_code() -> None:
    problem = CORES.broken("spec.containers[0].resources", "150", "use 100 or 200")
    assert str(problem) == f'spec.containers[0].resources: got "150"; {CORES.text}; use 100 or 200 [HC002]'


def test_quotes_in_user_input_do_not_end_the_quotation() -> None:
    assert r'got "\"; allowed; \""' in str(CORES.broken("x", '"; allowed; "', "fix"))


ESCAPED: Final = {
    "plain": "plain",
    "ünï卡": "ünï卡",
    "a\nb": r"a\nb",
    "\x1b[31mred": r"\x1b[31mred",
    "\u202egnorw": r"\u202egnorw",
    "\u2028": r"\u2028",
    "\xa0": r"\xa0",
    "\ud800": r"\ud800",
    "\x00": r"\x00",
}


@pytest.mark.parametrize(("text", "safe"), ESCAPED.items(), ids=ascii)
def test_terminal_control_characters_are_escaped(text: str, safe: str) -> None:
    assert printable(text, 20) == safe


@pytest.mark.parametrize(("text", "cut"), {"12345": "12345", "123456": "1234…", "\n\n\n": r"\n\n…"}.items(), ids=ascii)
def test_long_text_is_cut_with_an_ellipsis(text: str, cut: str) -> None:
    assert printable(text, 5) == cut


# --- laws -------------------------------------------------------------------------------------------------------------

any_char = st.characters(exclude_categories=()) | st.sampled_from(
    '\n\r\t\x00\x1b"|\\\u202e\u2028\ud800\udfff\U000e0001😀卡'
)
any_text = st.text(any_char, max_size=30) | st.builds(lambda char, times: char * times, any_char, st.integers(0, 2000))
rules = st.sampled_from(list(RULES.values()))
any_problem = st.builds(lambda rule, where, got, fix: rule.broken(where, got, fix), rules, any_text, any_text, any_text)


@given(st.lists(any_problem, max_size=12))
def test_a_message_is_one_safe_line_of_at_most_900_bytes(some: list[Problem]) -> None:
    text = message(some)
    assert len(text.encode("utf-8")) <= MAX_MESSAGE_BYTES == 900
    assert text.isprintable()
    assert bool(text) == bool(some)


@given(any_text, st.integers(1, 300))
def test_printable_text_is_within_its_bound(text: str, limit: int) -> None:
    safe = printable(text, limit)
    assert len(safe) <= limit
    assert safe.isprintable()
    assert safe.encode("utf-8").decode("utf-8") == safe
    assert safe == text or not text.isprintable() or len(text) > limit


@given(any_text)
def test_a_warning_is_one_safe_line_of_at_most_120_characters(text: str) -> None:
    assert len(warning(text)) <= MAX_WARNING_CHARS == 120
    assert warning(text).isprintable()


@given(any_problem)
def test_a_problem_as_a_warning_begins_with_its_code(problem: Problem) -> None:
    text = as_warning(problem)
    assert len(text) <= MAX_WARNING_CHARS
    assert text.isprintable()
    assert text.startswith(f"[{problem.code}] ")


def test_the_code_and_the_place_of_a_warning_are_read_back() -> None:
    where = 'spec.containers[0].resources.limits["a/b"]'
    assert warned(as_warning(CORES.broken(where, 1, "x"))) == ("HC002", "")  # too long: the place is left out
    assert warned(as_warning(Problem("HC044", where, "3", "cores are per cent", "use 3"))) == ("HC044", where)
    assert warned("100 Mi are 1 unit: [HC044] a: b") == ("", "")


@given(any_text, st.integers(3, 100))
def test_clipped_text_is_whole_characters_within_its_bytes(text: str, limit: int) -> None:
    cut = clipped(text, limit)
    whole = text.encode("utf-8", "replace")
    assert len(cut.encode("utf-8", "replace")) <= limit
    assert cut == text if len(whole) <= limit else whole.startswith(cut[:-1].encode("utf-8"))


# --- many problems ----------------------------------------------------------------------------------------------------


def numbered(rule: Rule, number: int) -> Problem:
    return rule.broken(f"spec.containers[{number}]", number, "use another")


def test_the_most_important_problem_comes_first() -> None:
    found = [numbered(rule, 0) for rule in (ENV_WIDENS, SHARE_NEEDS_MEMORY, QUANTITY, CORES)]
    assert re.findall(r"\[(HC\d{3})\]", message(found)) == ["HC001", "HC002", "HC006", "HC021"]


def test_equally_important_problems_keep_the_order_of_the_pod() -> None:
    found = [numbered(CORES, number) for number in (0, 1, 2)]
    assert re.findall(r"containers\[(\d)\]", message(found)) == ["0", "1", "2"]


@pytest.mark.parametrize("count", [1, 5, 50, 20_000])
def test_problems_that_do_not_fit_are_counted(count: int) -> None:
    text = message(numbered(CORES, number) for number in range(count))
    shown = text.count(f"[{CORES.code}]")
    more = re.search(r" \(and (\d+) more\)$", text)
    assert shown + (int(more[1]) if more else 0) == count
    assert shown >= min(count, 4)
    assert len(text.encode()) <= MAX_MESSAGE_BYTES


def test_the_first_problem_is_included_even_if_it_is_too_long() -> None:
    wide = "\U0001f600" * 1000
    text = message([*(numbered(ENV_WIDENS, number) for number in range(30_000)), CORES.broken(wide, wide, wide)])
    assert text.startswith("\U0001f600" * 100)
    assert text.endswith(" (and 30000 more)")
    assert 800 < len(text.encode()) <= MAX_MESSAGE_BYTES


def test_a_warning_shows_the_beginning_of_the_value() -> None:
    assert as_warning(Problem("HC002", "spec", "x" * 60, "a rule", "a fix")) == (
        f'[HC002] spec: got "{"x" * 23}…"; a rule; a fix'
    )


def test_a_warning_that_does_not_fit_omits_the_field_and_keeps_the_rule() -> None:
    text = as_warning(CORES.broken("spec." + "x" * 200, "1.5", "use 100 or 200"))
    assert text.startswith(f"[HC002] {CORES.text}; ")
