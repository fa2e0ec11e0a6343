"""`halfcard certs status|rotate`: shows an installation's certificates, or requests new ones."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final

import msgspec

from certs import objects
from certs.certificate_checks import certificates, is_ours
from certs.chain_health import ChainHealth, ObjectState, verdict
from certs.chains import Chain, ObjectPath, chains
from certs.lifetimes import KNOWN_AFTER, RETIREMENT
from certs.objects import Object
from certs.store import StoreError
from halfcard import names
from halfcard.exit_codes import EXIT_OK, EXIT_REFUSED, EXIT_USAGE
from kube.api.calls import Answer, ApiCalls

from .diagnosis.scheduler.extender_calls import copy_faults
from .diagnosis.snapshot import Snapshot
from .inputs.certificate_chains import read_certificates
from .inputs.cluster_state import add_access_arguments, ask
from .output.certificate_report import CertificateRow, as_json, copies, rows
from .output.structured import TEXT, add_output_argument, print_document
from .output.terminal import Colour, Screen

_HEADS: Final = ("OBJECT", "ENDS", "DAYS", "HOLDS")
_COLOURS: Final = {ObjectState.FINE: Colour.GREEN, ObjectState.DUE: Colour.RED}
_EXTENDER: Final = "extender"


class _NotRotated(Exception):
    """Halfcard may not rotate this certificate; the text says why."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    status = commands.add_parser(
        "status",
        help="show each certificate, what trusts it, and whether something is due",
        epilog="Exit codes: 0 nothing is due, 1 something is due, 2 something cannot be read.",
    )
    add_access_arguments(status)
    add_output_argument(status)
    status.set_defaults(command=_status)
    rotate = commands.add_parser(
        "rotate",
        help="request new certificates; the controller issues them within a minute",
        epilog="Exit codes: 0 requested, 1 another issuer's, 2 cannot be requested.",
    )
    titles = [chain.title for chain in chains(names.NAMESPACE)]
    rotate.add_argument("chain", nargs="?", choices=titles, default=titles[0], help="which (default %(default)s)")
    rotate.add_argument("--authority", action="store_true", help="a new CA; certificates signed by it follow")
    rotate.add_argument("--dry-run", action="store_true", help="only check whether it is possible and permitted")
    add_access_arguments(rotate)
    rotate.set_defaults(command=_rotate)


def run(arguments: argparse.Namespace) -> int:
    code: int = arguments.command(arguments)
    return code


# --- status ----------------------------------------------------------------------------------------------------------


def _status(arguments: argparse.Namespace) -> int:
    found, contact = ask(arguments, read_certificates)
    now = datetime.now(UTC)
    lines = [*[row for each in found for row in rows(each)], *copies(contact)]
    verdicts = [*[verdict(each, now) for each in found], *_copies_due(contact, now)]
    remarks = [remark for each in found for remark in each.state.unmanaged()]
    if arguments.output != TEXT:
        objects_found = [as_json(row, now) for row in lines]
        judged = [{"chain": each.chain, "state": each.state, "reason": each.reason} for each in verdicts]
        print_document(arguments.output, {"objects": objects_found, "chains": judged, "remarks": remarks})
    else:
        _print(Screen.on(sys.stdout), lines, verdicts, now)
    return _code({each.state for each in verdicts})


def _copies_due(lease: Object, now: datetime) -> Iterator[ChainHealth]:
    """Yields copies of the scheduler's certificate that end soon or are refused, by the rules of `halfcard doctor`."""
    for fault in copy_faults(Snapshot(now, leases={names.SCHEDULER_CONTACT: lease})):
        yield ChainHealth("scheduler", ObjectState.DUE, f"{fault.where}: {fault.got}; {fault.fix}")


def _code(states: set[ObjectState]) -> int:
    if ObjectState.DUE in states:
        return EXIT_REFUSED
    return EXIT_USAGE if ObjectState.UNREADABLE in states else EXIT_OK


def _print(screen: Screen, found: Sequence[CertificateRow], verdicts: Sequence[ChainHealth], now: datetime) -> None:
    screen.headed_table([_HEADS, *[_cells(row, now) for row in found]], right=(2,))
    for each in verdicts:
        text = f"{each.chain}: {each.state}: {each.reason}"
        screen.wrapped(text, indent="", hanging="  ", colour=_COLOURS.get(each.state, Colour.YELLOW))


def _cells(row: CertificateRow, now: datetime) -> tuple[str, str, str, str]:
    if row.ends is None:
        return row.title, "-", "-", row.holds
    return row.title, objects.written(row.ends), str(row.days_left(now)), row.holds


# --- rotate ----------------------------------------------------------------------------------------------------------


def _rotate(arguments: argparse.Namespace) -> int:
    (chain,) = (each for each in chains(names.NAMESPACE) if each.title == arguments.chain)
    try:
        ask(arguments, lambda calls: _ask_for(calls, chain, arguments))
    except _NotRotated as error:
        print(f"halfcard certs: {error}", file=sys.stderr)
        return EXIT_REFUSED
    screen = Screen.on(sys.stdout)
    for line in _next_steps(chain, arguments):
        screen.wrapped(line, indent="", hanging="  ")
    return EXIT_OK


async def _ask_for(calls: ApiCalls, chain: Chain, arguments: argparse.Namespace) -> None:
    """Tries all changes as dry runs first, so that a rotation is never half done."""
    asked, wanted = (
        (names.NEW_CA_ASKED, chain.leaves[:1]) if arguments.authority else (names.NEW_LEAF_ASKED, chain.leaves)
    )
    mark = msgspec.json.encode({"metadata": {"annotations": {asked: objects.written(datetime.now(UTC))}}})
    for query in ("?dryRun=All",) if arguments.dry_run else ("?dryRun=All", ""):
        for place in wanted:
            _check(place, await calls.patch(f"{place}{query}", mark))


def _check(place: ObjectPath, answer: Answer) -> None:
    if answer.status == HTTPStatus.NOT_FOUND:
        raise StoreError(f"{place.name} is missing; does the Deployment {names.CERTS_SERVICE} run?")
    if answer.status != HTTPStatus.OK:
        raise StoreError(f"updating {place.name}: the API server answered {answer.status}: {answer.message()}")
    found = certificates(objects.entry(msgspec.json.decode(answer.body), objects.TLS_CRT))
    if found and not is_ours(found[0]):
        raise _NotRotated(f"{place.name} was not issued by Halfcard; its issuer renews it")


def _next_steps(chain: Chain, arguments: argparse.Namespace) -> Sequence[str]:
    begin = "would request" if arguments.dry_run else "requested"
    if not arguments.authority:
        return (f"{begin} new certificates: {', '.join(place.name for place in chain.leaves)}",)
    minutes, hours = KNOWN_AFTER.total_seconds() / 60, RETIREMENT.total_seconds() / 3600
    steps = (
        f"{begin} a new CA in {chain.authority.name}; it is trusted at once, next to the old one",
        f"{minutes:.0f} minutes later it signs new certificates",
        f"{hours:.0f} hour after the last of them the old CA is removed",
    )
    return (*steps, _BY_HAND) if chain.title == _EXTENDER else steps


_BY_HAND: Final = (
    f"but for {names.EXTENDER_TLS}: give the schedulers the new files of {names.SCHEDULER_TLS}, restart them, and then "
    f"type `halfcard certs rotate {_EXTENDER}`"
)
