"""Writes and reads the two files that a container's processes share with the agent, byte by byte as
`isolation/shared_files.h` describes them.

The account is written by tenants: any bytes are possible, and what it says is a claim. Numbers are of this machine.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

VERSION: Final = 2
MOST_CARDS: Final = 16
MOST_PROCESSES: Final = 512
NO_LIMIT: Final = 2**64 - 1

_HEAD: Final = struct.Struct("=8sQ48x")
_CARD_HEAD: Final = struct.Struct("=3Q40x")
_ROW: Final = struct.Struct("=8Q")
_CONTROL: Final = struct.Struct("=16s6Q")
_EXCESS: Final = struct.Struct("=2Q")
_CORES: Final = struct.Struct("=2Q")
_NUMBER: Final = struct.Struct("=Q")
_ACCOUNT_MAGIC: Final = b"Haccount"
_CONTROL_MAGIC: Final = b"Hcontrol"
_CARD_SIZE: Final = _CARD_HEAD.size + MOST_PROCESSES * _ROW.size
_CONTROL_SIZE: Final = _CONTROL.size + MOST_PROCESSES * _EXCESS.size
ACCOUNT_SIZE: Final = _HEAD.size + MOST_CARDS * _CARD_SIZE
CONTROL_SIZE: Final = _HEAD.size + MOST_CARDS * _CONTROL_SIZE
_SPARE: Final = 40
"""The place of `spare` in a card, before its correction."""
_CONTEXT: Final = 56
_MEASURED_AT: Final = 16
_PID_BITS: Final = 22
_PID_SHIFT: Final = 42
_PROGRAM_BITS: Final = 16
_START_BITS: Final = 26


class BrokenAccountError(ValueError):
    """An account is not what the agent wrote for its container: where, got, rule, fix."""


class AccountRow(NamedTuple):
    """What one process says that it uses of one card; `owner` names the process.

    `context_bytes` of its `bytes` were taken for its contexts, of which `contexts` are not green.
    """

    owner: int
    bytes: int = 0
    refused: int = 0
    launches: int = 0
    gpu_ns: int = 0
    throttled_ns: int = 0
    contexts: int = 0
    context_bytes: int = 0

    @property
    def pid(self) -> int:
        """The pid that the container sees."""
        return self.owner >> _PID_SHIFT

    @property
    def process(self) -> int:
        """Names the process, as `process_name` does; the rest of the owner tells its programs apart."""
        return self.owner >> _PROGRAM_BITS


def process_name(pid: int, start: int) -> int:
    """Names a process by the pid that its container sees and its start time, in ticks since the boot."""
    return (pid & (1 << _PID_BITS) - 1) << _START_BITS | start & (1 << _START_BITS) - 1


class AccountCard(NamedTuple):
    """The rows by their place; `holder` names the process that holds the lock, 0 for none."""

    holder: int
    recovered: int
    rows: dict[int, AccountRow]


class Excess(NamedTuple):
    """Memory that a process uses and its row does not show."""

    owner: int
    bytes: int


class CardControl(NamedTuple):
    """The limits of one card; cores in 1/1000 of the card, `correction` in 1/1000 of the times that rows claim.

    While there is spare, the ceiling limits instead of the share; without a ceiling, the share does. The libraries
    believe `spare` for seconds, and a correction below 1000 for minutes, after the time of measurement.
    """

    uuid: bytes
    memory: int = NO_LIMIT
    share: int = NO_LIMIT
    ceiling: int = NO_LIMIT
    spare: int = 0
    correction: int = 1000
    context: int = 0
    excess: tuple[Excess, ...] = ()


def new_account(cards: int = MOST_CARDS) -> bytes:
    """Returns the start of an account, up to the last of these cards; zeros follow."""
    return _HEAD.pack(_ACCOUNT_MAGIC, VERSION).ljust(account_size(cards), b"\0")


def account_size(cards: int) -> int:
    """Returns how many bytes of an account its first cards have."""
    return _HEAD.size + cards * _CARD_SIZE


def read_account(data: bytes, where: str, cards: int = MOST_CARDS, size: int = ACCOUNT_SIZE) -> tuple[AccountCard, ...]:
    """Parses the first cards of an account that any tenant may have written.

    Args:
        data: the account up to the last of these cards.
        where: names it in the error.
        cards: how many are read.
        size: the size of the file, which its container may have changed.

    Raises:
        BrokenAccountError: the file was cut or made longer, or is not an account of this version.
    """
    found = size if len(data) == account_size(cards) else len(data)
    if found != ACCOUNT_SIZE:
        raise _broken(where, f"{found} bytes", f"an account has {ACCOUNT_SIZE}")
    magic, version = _HEAD.unpack_from(data)
    if (magic, version) != (_ACCOUNT_MAGIC, VERSION):
        raise _broken(where, f"{magic!r} {version}", f"an account begins with {_ACCOUNT_MAGIC!r} {VERSION}")
    return tuple([_account_card(data, account_size(at)) for at in range(cards)])


def _broken(where: str, got: str, rule: str) -> BrokenAccountError:
    return BrokenAccountError(f"{where}: got {got}; {rule}; restart the container, which gives it a new account")


def _account_card(data: bytes, start: int) -> AccountCard:
    holder, rows_used, recovered = _CARD_HEAD.unpack_from(data, start)
    first = start + _CARD_HEAD.size
    rows = data[first : first + min(rows_used, MOST_PROCESSES) * _ROW.size]
    found = {at: AccountRow(*row) for at, row in enumerate(_ROW.iter_unpack(rows)) if row[0]}
    return AccountCard(holder, recovered, found)


def write_control(cards: Sequence[CardControl]) -> bytes:
    """Returns the whole file; at most MOST_CARDS cards, in the order of the account."""
    head = _HEAD.pack(_CONTROL_MAGIC, VERSION)
    return b"".join([head, *map(_written, cards)]).ljust(CONTROL_SIZE, b"\0")


def read_control(data: bytes) -> tuple[CardControl, ...]:
    """Returns the cards of a control file that the agent wrote, in their order, without their excess."""
    starts = (_HEAD.size + at * _CONTROL_SIZE for at in range(MOST_CARDS))
    found = [CardControl(*_CONTROL.unpack_from(data, start)) for start in starts]
    return tuple([each for each in found if any(each.uuid)])


def excess_of_control(at: int, excess: Sequence[Excess]) -> tuple[int, bytes]:
    """Returns where to write what, to change all that the processes of one card use beyond their rows."""
    written = b"".join([_EXCESS.pack(*each) for each in excess])
    return _HEAD.size + at * _CONTROL_SIZE + _CONTROL.size, written.ljust(MOST_PROCESSES * _EXCESS.size, b"\0")


def cores_of_control(at: int, *, spare: bool, correction: int) -> tuple[int, bytes]:
    """Returns where to write what, to change the spare and the correction of one card."""
    return _HEAD.size + at * _CONTROL_SIZE + _SPARE, _CORES.pack(spare, correction)


def context_of_control(at: int, size: int) -> tuple[int, bytes]:
    """Returns where to write what, to change what is taken for a context on one card."""
    return _HEAD.size + at * _CONTROL_SIZE + _CONTEXT, _NUMBER.pack(size)


def measured_at_of_control(monotonic_ns: int) -> tuple[int, bytes]:
    """Returns where to write what, to say when the spare and the corrections of a control file were measured."""
    return _MEASURED_AT, _NUMBER.pack(monotonic_ns)


def _written(card: CardControl) -> bytes:
    *numbers, excess = card
    written = [_CONTROL.pack(*numbers), *(_EXCESS.pack(*each) for each in excess)]
    return b"".join(written).ljust(_CONTROL_SIZE, b"\0")
