"""`halfcard review`: judges manifests offline, with the same decisions as the webhook."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from admission.policy_settings import policy_of
from halfcard.cluster_view import NOTHING_KNOWN
from halfcard.columns import WIDTH
from halfcard.exit_codes import EXIT_OK, EXIT_REFUSED, EXIT_USAGE
from kube.manifests.documents import Document, parse, read_path
from kube.manifests.folder_source import FolderSource
from kube.manifests.manifest_error import ManifestError
from settings.installation import SettingsError
from settings.settings_file import load_settings

from .judge import Item, Judge, differences
from .output.structured import TEXT, add_output_argument, print_document
from .output.terminal import Colour, Screen

_MARKS = {"+": Colour.GREEN, "-": Colour.RED, "~": Colour.YELLOW}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-f",
        "--file",
        dest="files",
        action="extend",
        nargs="+",
        required=True,
        metavar="FILE",
        help="manifests or folders of them; - for standard input",
    )
    parser.add_argument("--state", type=Path, metavar="DIR", help="manifests of the cluster: nodes, ConfigMaps")
    parser.add_argument("--settings", type=Path, metavar="FILE", help="the installation's settings")
    parser.add_argument("--as", dest="user", default="", metavar="USER", help="judge as this user (default: a tenant)")
    parser.add_argument("-n", "--namespace", default="default", help="the namespace of objects that name none")
    add_output_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    try:
        settings = load_settings(arguments.settings)
        folder, rules = arguments.state, settings.capacity_rules()
        cluster = NOTHING_KNOWN if folder is None else FolderSource(folder, rules).view()
        judge = Judge(policy_of(settings), cluster, arguments.namespace, arguments.user)
        documents = list(_documents(arguments.files))
    except (ManifestError, SettingsError, OSError) as error:
        print(f"halfcard review: {error}", file=sys.stderr)
        return EXIT_USAGE
    reviewed = [(document, judge.review(document.obj)) for document in documents]
    if arguments.output == TEXT:
        _print_text(reviewed)
    else:
        print_document(arguments.output, _summary(reviewed))
    return EXIT_OK if all(item.verdict.allowed for _, item in reviewed) else EXIT_REFUSED


def _documents(files: Iterable[str]) -> Iterator[Document]:
    for file in files:
        yield from parse(sys.stdin.buffer.read(), "standard input") if file == "-" else read_path(Path(file))


Reviewed = Sequence[tuple[Document, Item]]


def _summary(reviewed: Reviewed) -> dict[str, list[dict[str, object]]]:
    return {"items": [item.as_json() for _, item in reviewed]}


def _print_text(reviewed: Reviewed) -> None:
    screen = Screen.on(sys.stdout)
    for document, item in reviewed:
        _print_item(screen, item, f"{document.source_file}:{document.line}")
    screen.line(_totals(item for _, item in reviewed))


def _print_item(screen: Screen, item: Item, source: str) -> None:
    verdict = item.verdict
    word = "allowed" if verdict.allowed else "refused"
    shown = screen.paint(word, Colour.GREEN if verdict.allowed else Colour.RED)
    title = screen.paint(f"{item.kind} {item.title}".rstrip(), Colour.BOLD)
    plain = f"{word}  {item.kind} {item.title}  {source}"
    separator = "  " if len(plain) <= WIDTH else "\n    "
    screen.line(f"{shown}  {title}{screen.paint(f'{separator}{source}', Colour.DIM)}")
    for text in verdict.warnings:
        screen.wrapped(f"Warning: {text}", indent="    ", hanging="         ", colour=Colour.YELLOW)
    for problem in verdict.problems:
        screen.wrapped(str(problem), indent="    ", hanging="  ")
    for difference in differences(item.obj, item.verdict.changes):
        screen.wrapped(difference, indent="    ", hanging="  ", colour=_MARKS[difference[0]])


def _totals(items: Iterable[Item]) -> str:
    allowed = [item.verdict.allowed for item in items]
    objects = f"{len(allowed)} object{'' if len(allowed) == 1 else 's'}"
    return f"{objects}, {sum(allowed)} allowed, {len(allowed) - sum(allowed)} refused"
