"""Misspelled commands and options are answered with the usage of the command that was meant."""

from __future__ import annotations

import pytest

from .command import halfcard

MISTAKES = {
    "a misspelled command": ("docter", "usage: halfcard ", 'unknown command "docter"; did you mean "doctor"?'),
    "an unknown command": ("zzz", "usage: halfcard ", 'unknown command "zzz"; --help lists them'),
    "a misspelled subcommand": ("certs statu", "usage: halfcard certs ", 'did you mean "status"?'),
    "a misspelled option": ("doctor --stict", "usage: halfcard doctor ", '--stict; did you mean "--strict"?'),
    "an option of a subcommand": ("quota explain ns --sod=1", "usage: halfcard quota explain ", "arguments: --sod=1"),
    "an argument too many": ("top nodes pods", "usage: halfcard top ", "unrecognized arguments: pods"),
    "no command": ("", "usage: halfcard ", "COMMAND"),
}


@pytest.mark.parametrize(("typed", "usage", "said"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_answered_with_the_usage_of_the_command_that_was_meant(typed: str, usage: str, said: str) -> None:
    done = halfcard(*typed.split())
    assert done.code == 2
    assert done.err.startswith(usage) and said in done.err
    assert done.out == ""
