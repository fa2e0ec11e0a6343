"""`halfcard review`: judges manifests offline, with the same decisions as the webhook."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from admission.policy_settings import policy_of
from halfcard.cluster_view import NOTHING_KNOWN
from kube.api.access import Access
from kube.manifests.documents import Document
from kube.manifests.folder_source import FolderSource
from kube.manifests.manifest_error import ManifestError
from settings.installation import SettingsError
from settings.settings_file import load_settings

from .inputs.cluster_state import add_access_arguments, find_access
from .inputs.stored_workloads import read_again
from .judge import Judge
from .output.structured import TEXT, add_output_argument, print_document
from .output.terminal import Progress, counted
from .reviewing.review_report import Reviewed, ReviewReport, reviewed
from .reviewing.review_text import print_text
from .reviewing.sarif import sarif
from .reviewing.sources import Entry, entries

_SARIF: Final = "sarif"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "-f",
        "--file",
        dest="files",
        action="extend",
        nargs="+",
        metavar="FILE",
        help="manifests or folders of them; - for standard input",
    )
    what.add_argument("--cluster", action="store_true", help="what is stored: list what would be refused")
    add_access_arguments(parser, impersonates=False)
    parser.add_argument("--state", type=Path, metavar="DIR", help="manifests of the cluster: nodes, ConfigMaps")
    parser.add_argument("--settings", type=Path, metavar="FILE", help="the installation's settings")
    parser.add_argument("--as", dest="user", default="", metavar="USER", help="judge as this user (default: a tenant)")
    parser.add_argument("-n", "--namespace", default="default", help="the namespace of objects that name none")
    parser.add_argument("-q", "--quiet", action="store_true", help="show nothing that is allowed")
    parser.add_argument("--strict", action="store_true", help="exit with 4 if something was not judged")
    parser.add_argument("--allow-empty", action="store_true", help="accept a FILE without any object")
    add_output_argument(parser, _SARIF, what="sarif shows problems in the lines of a pull request")


def run(arguments: argparse.Namespace) -> int:
    with Progress(sys.stderr, "halfcard review") as progress:
        report = _report(arguments, progress)
    code = report.exit_code(strict=arguments.strict)
    shown = report.without_allowed() if arguments.quiet else report
    if arguments.output == TEXT:
        print_text(shown, totals=not arguments.quiet)
    elif arguments.output == _SARIF:
        print_document("json", sarif(shown, exit_code=code))
    else:
        print_document(arguments.output, shown.as_json())
    return code


def _report(arguments: argparse.Namespace, progress: Progress) -> ReviewReport:
    try:
        judge = _judge(arguments)
    except ManifestError as error:
        return ReviewReport(errors=(error,))
    except SettingsError as error:
        return ReviewReport(errors=tuple(_settings_errors(arguments.settings, error)))
    progress.say("reading")
    if arguments.cluster:
        return ReviewReport(tuple(_of_cluster(find_access(arguments), judge)))
    found = list(entries(arguments.files, allow_empty=arguments.allow_empty))
    return ReviewReport.of(_each(judge, found, progress))


def _judge(arguments: argparse.Namespace) -> Judge:
    settings = load_settings(arguments.settings)
    folder, rules = arguments.state, settings.capacity_rules()
    cluster = NOTHING_KNOWN if folder is None else FolderSource(folder, rules).view()
    return Judge(policy_of(settings), cluster, arguments.namespace, arguments.user)


def _settings_errors(path: Path, error: SettingsError) -> Iterator[ManifestError]:
    for line in str(error).splitlines():
        yield ManifestError(str(path), 1, what=line.removeprefix(f"{path}: "), fix="correct the settings")


def _of_cluster(access: Access, judge: Judge) -> Iterator[Reviewed]:
    """Judges what is stored; what has no problem is not listed."""
    left_out: list[str] = []
    for item in read_again(access, judge, left_out):
        yield Reviewed(Document(dict(item.obj), "cluster", 1), item)
    for each in left_out:
        print(f"halfcard review: {each}", file=sys.stderr)


def _each(judge: Judge, found: list[Entry], progress: Progress) -> Iterator[Reviewed | Entry]:
    for number, each in enumerate(found):
        progress.say(f"{number:,} of {counted(len(found), 'object')} judged")
        yield reviewed(judge, each) if isinstance(each, Document) else each
