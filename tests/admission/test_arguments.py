from __future__ import annotations

import argparse

import pytest

from admission.arguments import add_common
from serving.address import Address


def parse(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_common(parser, admission="127.0.0.1:8443", status="127.0.0.1:8080")
    return parser.parse_args(arguments)


def test_the_caller_sets_the_defaults() -> None:
    parsed = parse()
    assert (parsed.admission, parsed.status) == (Address("127.0.0.1", 8443), Address("127.0.0.1", 8080))
    assert parsed.settings is None
    assert parsed.grace > 0


def test_every_argument_is_read() -> None:
    parsed = parse(
        "--admission", "127.0.0.2:0", "--status", ":1", "--settings", "s", "--grace", "0.5", "--log", "console"
    )
    assert parsed.admission == Address("127.0.0.2", 0)
    assert parsed.status.port == 1
    assert (str(parsed.settings), parsed.grace, parsed.log.value) == ("s", 0.5, "console")


@pytest.mark.parametrize(
    "wrong", [["--admission", "nowhere"], ["--status", ":99999"], ["--log", "loud"], ["--grace", "x"]]
)
def test_a_wrong_argument_is_explained(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(*wrong)
    assert ended.value.code == 2
    assert wrong[0] in capsys.readouterr().err
