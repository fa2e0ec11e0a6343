from __future__ import annotations

import re
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kube.manifests.yaml_scalars import Number, plain

MEANINGS: dict[str, object] = {
    **dict.fromkeys(("yes", "Yes", "YES", "on", "On", "y", "Y", "true", "True", "TRUE"), True),
    **dict.fromkeys(("no", "No", "NO", "off", "Off", "n", "N", "false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    "yEs": "yEs",
    "oN": "oN",
    "0": 0,
    "30": 30,
    "-7": -7,
    "+7": 7,
    "1_000": 1000,
    "0x1F": 31,
    "-0b101": -5,
    "0o17": 15,
    "017": 15,
    "18446744073709551615": 18446744073709551615,
    "2020-01-31": "2020-01-31",
    "2020-01-31T10:00:00Z": "2020-01-31T10:00:00Z",
    "12:30:45": "12:30:45",
    "30m": "30m",
    "5Gi": "5Gi",
    "0.03k": "0.03k",
    "-": "-",
    "1.2.3": "1.2.3",
    "1e999": "1e999",
    "0x": "0x",
    "_1": "_1",
}


@pytest.mark.parametrize(("text", "meaning"), MEANINGS.items())
def test_a_word_means_what_it_means_to_kubectl(text: str, meaning: object) -> None:
    found = plain(text)
    assert found == meaning
    assert type(found) is type(meaning)


NUMBERS = {
    "0.3": "0.3",
    "0.30": "0.30",
    "3e1": "3e1",
    "0.03": "0.03",
    "30.0": "30.0",
    ".5": "0.5",
    "+1.5E+3": "1.5E+3",
    "-.5": "-0.5",
    "5.": "5",
    "5.e2": "5e2",
    "08": "8",
    "00.5": "0.5",
    "18446744073709551616": "18446744073709551616",
    "-9223372036854775809": "-9223372036854775809",
}


@pytest.mark.parametrize(("text", "json"), NUMBERS.items())
def test_a_number_that_is_no_64_bit_integer_keeps_its_digits(text: str, json: str) -> None:
    found = plain(text)
    assert isinstance(found, Number)
    assert found == text
    assert found.as_json() == json.encode()


@pytest.mark.parametrize("text", [".inf", "-.Inf", "+.INF", ".nan", ".NaN", ".NAN", "9" * 5000, "0." + "3" * 5000])
def test_values_that_json_does_not_have_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"infinity|characters"):
        plain(text)


def test_a_leading_zero_counts_by_eights_also_beyond_64_bits() -> None:
    assert plain("02000000000000000000000") == Number("18446744073709551616")


@given(st.from_regex(r"[+-]?([0-9]{1,12}\.?[0-9]{0,12}|\.[0-9]{1,12})([eE][+-]?[0-9]{1,2})?", fullmatch=True))
def test_the_value_of_a_number_survives_json(text: str) -> None:
    assume(not re.fullmatch(r"[+-]?0[0-7]+", text))  # YAML 1.1 counts these by eights
    found = plain(text)
    if isinstance(found, Number):
        assert Decimal(found.as_json().decode()) == Decimal(text)


@given(st.text(max_size=20))
def test_any_word_has_a_meaning_or_is_refused(text: str) -> None:
    try:
        found = plain(text)
    except ValueError:
        return
    assert found is None or type(found) in (str, int, bool, Number)
