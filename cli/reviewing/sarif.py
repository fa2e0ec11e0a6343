"""The result of a review as SARIF 2.1.0, which code hosts show in the lines of a pull request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

import halfcard
from halfcard.problems import RULES, Severity, warned

from .review_report import Reviewed, ReviewReport

_LEVELS: Final = {Severity.DENY: "error", Severity.WARN: "warning", Severity.OFF: "none"}
_UNREADABLE, _NOT_JUDGED, _CHANGED = "unreadable", "not-judged", "changed-amount"
_OWN_RULES: Final = (
    (_UNREADABLE, "error", "a manifest must be readable", "What cannot be read is not reviewed."),
    (_NOT_JUDGED, "note", "only what can hold pods that Halfcard knows is judged", "Its pods are judged when created."),
    (_CHANGED, "note", "an amount is repaired to another one", "The pod is stored with the repaired amount."),
)


def sarif(report: ReviewReport, *, exit_code: int) -> dict[str, Any]:
    tool = {"driver": {"name": "halfcard", "version": halfcard.__version__, "rules": list(_rules())}}
    ended = {"executionSuccessful": not report.errors, "exitCode": exit_code}
    run = {"tool": tool, "invocations": [ended], "results": list(_results(report))}
    return {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}


def _rules() -> Iterator[dict[str, Any]]:
    for rule in RULES.values():
        yield _rule(rule.code, _LEVELS[rule.severity], rule.text, rule.why)
    for own in _OWN_RULES:
        yield _rule(*own)


def _rule(name: str, level: str, text: str, why: str) -> dict[str, Any]:
    return {
        "id": name,
        "shortDescription": {"text": text},
        "fullDescription": {"text": why},
        "defaultConfiguration": {"level": level},
    }


def _results(report: ReviewReport) -> Iterator[dict[str, Any]]:
    for each in report.reviewed:
        yield from _of_object(each)
    for error in report.errors:
        yield _result(_UNREADABLE, "error", f"{error.what}; {error.fix}", error.file, error.line)


def _of_object(reviewed: Reviewed) -> Iterator[dict[str, Any]]:
    document, item = reviewed
    title, file = f"{item.kind} {item.title}".rstrip(), document.source_file
    for problem in item.verdict.problems:
        yield _result(problem.code, "error", f"{title}: {problem}", file, document.line_of(problem.where))
    for text in item.verdict.warnings:
        code, where = warned(text)
        level = "warning" if code else "note"
        yield _result(code or _CHANGED, level, f"{title}: {text}", file, document.line_of(where))
    if item.not_judged is not None:
        yield _result(_NOT_JUDGED, "note", f"{title}: {item.not_judged}", file, document.line)


def _result(rule: str, level: str, text: str, file: str, line: int) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": _uri(file)}, "region": {"startLine": line}}
    return {
        "ruleId": rule,
        "level": level,
        "message": {"text": text},
        "locations": [{"physicalLocation": place}],
    }


def _uri(file: str) -> str:
    path = PurePath(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
