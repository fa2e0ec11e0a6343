from __future__ import annotations

import pytest

from halfcard import names
from halfcard.caller_tokens import WITHOUT, is_accepted, path_with, read_tokens, split_path, written_tokens

A, B = "a" * 64, "0123456789abcdef" * 4


@pytest.mark.parametrize("token", [A, B, WITHOUT])
def test_a_path_is_split_as_it_was_made(token: str) -> None:
    assert split_path(path_with(token, names.VALIDATE_PODS_PATH)) == (token, names.VALIDATE_PODS_PATH)


@pytest.mark.parametrize(
    "path",
    ["", "/", "//", f"/{A}", f"/{A[1:]}/validate/pods", f"/{A}0/validate/pods", f"/{A.upper()}/x", f"{A}/x", "/é"],
)
def test_a_path_without_a_token_is_left_as_it_is(path: str) -> None:
    assert split_path(path) == (WITHOUT, path)


@pytest.mark.parametrize("tokens", [(), (A,), (A, B), (A, WITHOUT)])
def test_tokens_are_read_as_they_were_written(tokens: tuple[str, ...]) -> None:
    assert read_tokens(written_tokens(tokens)) == tokens


@pytest.mark.parametrize("text", [b"", b"\n\n", b"short", A[1:].encode(), b"\xff" * 64, b"no", b"NONE"])
def test_what_is_no_token_is_never_accepted(text: bytes) -> None:
    assert read_tokens(text) == ()


def test_only_an_accepted_token_is_accepted_and_a_missing_one_only_where_that_is_listed() -> None:
    assert is_accepted(A, (B, A)) and is_accepted(B, (B, A)) and is_accepted(WITHOUT, (A, WITHOUT))
    assert not is_accepted(A, (B,)) and not is_accepted(WITHOUT, (A,)) and not is_accepted(A, ())
