"""The keys of ledgers: their stored text never changes, and reads as what was written."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfcard.quota.amount_key import AmountKey, label_value, limit_key
from halfcard.quota.charge import COUNTED
from halfcard.quota.ledger import Ledger, shortages

STORED: Final = {
    "cores": AmountKey("cores"),
    "cores per user": AmountKey("cores", label="user"),
    "cores per user=alice": AmountKey("cores", label="user", value="alice"),
    "memory per example.com/team=": AmountKey("memory", label="example.com/team", value=""),  # pods without the label
    "cards of model A100-SXM4-80GB": AmountKey("cards", model="A100-SXM4-80GB"),
    "shares of model *": AmountKey("shares", model="*"),
    "cores of model NVIDIA A100 of old": AmountKey("cores", model="NVIDIA A100 of old"),
    "cores of model A=B": AmountKey("cores", model="A=B"),  # no label, so this is no value
    "cores of pool lab": AmountKey("cores", pool="lab"),
    "memory of pool ": AmountKey("memory", pool=""),
    "of a later version": AmountKey("of a later version"),
}
NAMES: Final = st.text(max_size=8) | st.sampled_from(["*", "A=B", "per user=a", "of model T4", "pool x"])
LABELS: Final = st.text("abcXYZ019-_./", max_size=8)
NONE: Final = st.none()
KEYS: Final = st.one_of(
    st.tuples(st.sampled_from(COUNTED), NONE, NONE, NONE, NONE),
    st.tuples(st.sampled_from(COUNTED), LABELS, NONE | NAMES, NONE, NONE),
    st.tuples(st.sampled_from(COUNTED), NONE, NONE, NAMES, NONE),
    st.tuples(st.sampled_from(COUNTED), NONE, NONE, NONE, NAMES),
).map(lambda parts: AmountKey(*parts))


@pytest.mark.parametrize(("text", "key"), STORED.items())
def test_each_key_has_one_stored_form(text: str, key: AmountKey) -> None:
    assert (str(key), AmountKey.parse(text)) == (text, key)


@given(KEYS)
def test_a_written_key_reads_as_itself(key: AmountKey) -> None:
    assert AmountKey.parse(str(key)) == key


@given(KEYS)
def test_limit_and_label_value_are_those_of_the_parsed_key(key: AmountKey) -> None:
    assert limit_key(str(key)) == str(key._replace(value=None))
    assert label_value(str(key)) == key.value


@given(KEYS.filter(lambda key: bool(key.place)))
def test_a_path_of_a_status_leads_back_to_its_key(key: AmountKey) -> None:
    assert AmountKey.at(key.what, key.place) == key


def test_a_limit_by_model_holds_where_the_name_contains_an_equals_sign() -> None:
    assert shortages(Ledger({"cores of model A=B": 100}), {"cores of model A=B": 200})
