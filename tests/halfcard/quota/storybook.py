"""Runs stories of ledgers and queues: text files of commands, each with the state that must follow.

A story is a paragraph of comments, then steps: a command per line, `----`, and the answer. The commands are the methods
of `Storybook`. `python -m tests.halfcard.quota.storybook` writes the answers of the code into the files, for a change
that is wanted; read the difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from halfcard.quota.ledger import (
    Busy,
    Contended,
    Entry,
    Exceeded,
    Ledger,
    LostLeadership,
    Shortage,
    StoredPods,
    allowed,
    commit,
    excess,
    reserve,
    sum_of,
    take_over,
    used,
    without,
)
from halfcard.quota.queueing import BlockedPod, WaitingPod, queue
from halfcard.quota.turns import Turn

FOLDER: Final = Path(__file__).parent / "stories"
_RULE: Final = "----"
Pods = dict[str, Entry]


class Step(NamedTuple):
    line: int
    commands: tuple[str, ...]
    answer: str


class Story(NamedTuple):
    title: tuple[str, ...]
    steps: tuple[Step, ...]


class Storybook:
    """The ledgers and waiting pods of one story."""

    def __init__(self) -> None:
        self._ledgers: dict[str, Ledger] = {}
        self._epochs: dict[str, int] = {}
        self._waiting: list[WaitingPod] = []

    def run(self, command: str) -> str:
        verb, *words = command.split()
        options = dict(word[2:].split(":", 1) for word in words if word.startswith("--"))
        rest = [word for word in words if not word.startswith("--")]
        answer: str = getattr(self, "do_" + verb.replace("-", "_"))(rest, options)
        return answer

    # --- one ledger -------------------------------------------------------------------------------------------------

    def do_ledger(self, words: list[str], options: Mapping[str, str]) -> str:
        """`ledger NAME KEY=AMOUNT...`, counted already unless `--counted:no`."""
        name, *limits = words
        self._ledgers[name] = Ledger(_amounts(limits), is_ready=options.get("counted") != "no")
        self._epochs[name] = 0
        return self._state(name)

    def do_limit(self, words: list[str], _options: Mapping[str, str]) -> str:
        name, *limits = words
        self._ledgers[name] = self._ledgers[name]._replace(hard=_amounts(limits))
        return self._state(name)

    def do_reserve(self, words: list[str], options: Mapping[str, str]) -> str:
        name, pod, *cost = words
        entry = Entry(options.get("namespace", "team"), pod, _amounts(cost))
        try:
            self._ledgers[name] = reserve(self._ledgers[name], pod, entry)
        except Exceeded as full:
            word = "contended" if isinstance(full, Contended) else "full"
            return f"{word}: " + "; ".join(map(_shortage, full.shortages))
        except Busy as busy:
            return f"busy: {busy}"
        return self._state(name)

    def do_release(self, words: list[str], _options: Mapping[str, str]) -> str:
        name, pod = words
        self._ledgers[name] = without(self._ledgers[name], (pod,))
        return self._state(name)

    def do_commit(self, words: list[str], options: Mapping[str, str]) -> str:
        """`commit NAME POD:KEY=AMOUNT,... [--ended:POD,...] [--unreserved:POD,...] [--epoch:N]`: what is stored."""
        name, *pods = words
        live = {pod: Entry("team", pod, _amounts(cost.split(","))) for pod, cost in (each.split(":") for each in pods)}
        total = sum_of(entry.charge for entry in live.values())
        stored = StoredPods(live, total, unreserved=_names(options, "unreserved"), ended=_names(options, "ended"))
        try:
            self._ledgers[name] = commit(self._ledgers[name], int(options.get("epoch", self._epochs[name])), stored)
        except LostLeadership:
            return "another replica leads"
        return self._state(name)

    def do_take_over(self, words: list[str], _options: Mapping[str, str]) -> str:
        """`take-over NAME [QUOTA]`: a new leader, of a quota with this uid."""
        name, of = (*words, "")[:2]
        self._ledgers[name] = take_over(self._ledgers[name], of)
        self._epochs[name] = self._ledgers[name].epoch
        return self._state(name)

    # --- the queue --------------------------------------------------------------------------------------------------

    def do_wait(self, words: list[str], options: Mapping[str, str]) -> str:
        """`wait POD KEY=AMOUNT... [--for:LEDGER,...] [--priority:N] [--second:NN]`."""
        pod, *cost = words
        entries = {name: Entry("team", pod, _amounts(cost)) for name in sorted(_names(options, "for"))}
        created = f"2026-01-01T00:00:{options.get('second', '10')}Z"
        self._waiting.append(WaitingPod(pod, "team", pod, int(options.get("priority", 0)), Turn(created), entries))
        return ""

    def do_queue(self, _words: list[str], _options: Mapping[str, str]) -> str:
        found = queue(self._waiting, self._ledgers)
        admitted = ", ".join(each.pod for each in found.admissible) or "none"
        waits = [_wait(each) for each in found.blocked]
        return "\n".join([f"admit {admitted}", *waits])

    def _state(self, name: str) -> str:
        ledger = self._ledgers[name]
        if not ledger.is_ready:
            return "not counted yet"
        found = used(ledger)
        keys = [*dict.fromkeys([*allowed(ledger), *found])]
        parts = [", ".join(f"{key} {found[key]}{_of(allowed(ledger).get(key))}" for key in keys)]
        parts += [f"reserved for {' '.join(ledger.reservations)}"] if ledger.reservations else []
        parts += [f"late {' '.join(sorted(ledger.late))}"] if ledger.late else []
        parts += [f"over by {key} {amount}" for key, amount in excess(ledger).items()]
        return "; ".join(parts)


def _of(limit: int | None) -> str:
    return "" if limit is None else f"/{limit}"


def _shortage(short: Shortage) -> str:
    return f"{short.key} wants {short.wanted}, {short.used}/{short.hard} used, {short.missing} missing"


def _wait(blocked: BlockedPod) -> str:
    behind = [f"{key} behind {pod.pod}" for key, pod in blocked.behind.items()]
    why = [*map(_shortage, blocked.shortages), *behind, *filter(None, [blocked.obstacle])]
    return f"{blocked.waiting.pod} waits for {blocked.ledger}: {'; '.join(why)}"


def _amounts(words: list[str]) -> dict[str, int]:
    """`_` stands for the space in `cores per user=alice`."""
    pairs = (word.rpartition("=") for word in words)
    return {key.replace("_", " "): int(amount) for key, _, amount in pairs}


def _names(options: Mapping[str, str], key: str) -> frozenset[str]:
    return frozenset(filter(None, options.get(key, "").split(",")))


# --- files ----------------------------------------------------------------------------------------------------------


def stories(text: str) -> Iterator[Story]:
    """Reads a file; a line of comments after an empty line begins a story."""
    title: list[str] = []
    steps: list[Step] = []
    for at, block in _blocks(text):
        if block.startswith("#"):
            if steps:
                yield Story(tuple(title), tuple(steps))
                title, steps = [], []
            title += [line.removeprefix("# ") for line in block.splitlines()]
        else:
            commands, _, answer = block.partition(f"\n{_RULE}")
            steps.append(Step(at, tuple(commands.splitlines()), answer.strip()))
    yield Story(tuple(title), tuple(steps))


def _blocks(text: str) -> Iterator[tuple[int, str]]:
    for found in re.finditer(r"(?:[^\n]+\n?)+", text):
        yield text.count("\n", 0, found.start()) + 1, found[0].rstrip("\n")


def answers(story: Story) -> Iterator[tuple[Step, str]]:
    """Runs a story; the answer to several commands is that to the last."""
    book = Storybook()
    for step in story.steps:
        yield step, [book.run(command) for command in step.commands][-1]


def rewritten(text: str) -> str:
    """The same stories with the answers that the code gives now."""
    return "\n\n".join(_written(story) for story in stories(text)) + "\n"


def _written(story: Story) -> str:
    steps = ["\n".join([*step.commands, _RULE, answer]) for step, answer in answers(story)]
    return "\n\n".join(["\n".join(f"# {line}" for line in story.title), *steps])


if __name__ == "__main__":
    for file in FOLDER.glob("*.story"):
        file.write_text(rewritten(file.read_text()))
