# ruff: noqa: T201 - what it prints is its output
"""Two replicas under a steady load during faults: `python -m tests.cluster.soak --minutes 10`.

Exit codes: 0 all answers were right, 1 some were not, 3 it could not start. The same seed causes the same faults in the
same order.
"""

from __future__ import annotations

import argparse
import http.client
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count, cycle, product
from pathlib import Path
from random import Random
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from devcluster.cluster import Cluster
from devcluster.control_plane.client import ApiResponse
from devcluster.errors import CannotStartError, NotReadyError
from devcluster.services.installation import Installation, Replica
from halfcard import names
from halfcard.exit_codes import EXIT_CANNOT_START, EXIT_OK, EXIT_REFUSED

from .hammer import Hammer
from .soak_calls import NO_ANSWER, PODS, Call, Judgement, Kind, Window, judge
from .soak_faults import Faults

_SPACE: Final = "soak"
_PAUSE_S: Final = 0.1  # of each of the hammer's connections after each call: a load, not a race
_INTERVAL_S: Final = (3.0, 8.0)
_MAX_GROWTH_MIB: Final = 8.0
_WARM_PART: Final = 0.25
_SHOWN: Final = 10


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Load:
    """Creates good, bad and GPU-less pods in turn, for real and as dry runs, and deletes the stored ones at once."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lock = threading.Lock()
        self._turns = cycle(product(Kind, (True, False)))
        self._numbers = count()
        self.calls: list[Call] = []

    def once(self) -> ApiResponse:
        with self._lock:
            (kind, dry_run), number = next(self._turns), next(self._numbers)
        begin = time.monotonic()
        answer = self._create(kind, f"pod-{number}", dry_run=dry_run)
        self.calls.append(Call(kind, dry_run, begin, time.monotonic(), answer))
        if answer.ok and not dry_run:
            self._request("DELETE", f"{self._pods}/pod-{number}")
        time.sleep(_PAUSE_S)
        return answer

    @property
    def _pods(self) -> str:
        return f"/api/v1/namespaces/{_SPACE}/pods"

    def _create(self, kind: Kind, name: str, *, dry_run: bool) -> ApiResponse:
        return self._request("POST", f"{self._pods}{'?dryRun=All' if dry_run else ''}", PODS[kind](name))

    def _request(self, method: str, path: str, body: dict[str, object] | None = None) -> ApiResponse:
        try:
            return self._cluster.request(method, path, body)
        except (OSError, http.client.HTTPException):  # the API server is killed now and then
            return NO_ANSWER


class Watch:
    """Watches the memory of the replica that is never killed, and the 5xx answers of all replicas."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._bugs_of: dict[int, int] = {}
        self.memory_mib: list[float] = []

    def look(self) -> None:
        replicas = self._installation.replicas
        self.memory_mib.append(_resident_mib(replicas[0].program.pid))
        for replica in replicas:
            counted = _bugs(replica)
            if counted is not None:
                self._bugs_of[replica.program.pid] = counted

    @property
    def bugs(self) -> int:
        return sum(self._bugs_of.values())

    @property
    def growth_mib(self) -> float:
        """The growth of memory between the end of the warm-up and now."""
        return self.memory_mib[-1] - self.memory_mib[int(len(self.memory_mib) * _WARM_PART)]


def _resident_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")) / 1024


def _bugs(replica: Replica) -> int | None:
    """Returns how many 5xx a replica has answered; None if it does not answer."""
    status, text = replica.status(names.METRICS_PATH)
    if status != 200:
        return None
    samples = (each for family in text_string_to_metric_families(text) for each in family.samples)
    errors = (each for each in samples if each.name == "halfcard_admission_http_errors_total")
    return int(sum(each.value for each in errors if each.labels["status"].startswith("5")))


@dataclass(frozen=True, slots=True)
class Outcome:
    seed: int
    seconds: float
    answers: Mapping[str, Mapping[str, int]]
    faults: Mapping[str, int]
    memory_mib: tuple[float, float]
    bugs: int
    violations: tuple[str, ...]


def outcome(seed: int, seconds: float, calls: Sequence[Call], faults: Faults, watch: Watch) -> Outcome:
    judged = [(call, judge(call, faults.windows)) for call in calls]
    tally = Counter((call.kind, judgement) for call, judgement in judged)
    wrong = [_describe(call, faults.windows) for call, judgement in judged if judgement is Judgement.WRONG]
    if watch.bugs:
        wrong.append(f"{watch.bugs} answers were 5xx, which is a bug of Halfcard: see the logs of the replicas")
    if watch.growth_mib > _MAX_GROWTH_MIB:
        wrong.append(f"a replica grew by {watch.growth_mib:.1f} MiB; {_MAX_GROWTH_MIB:g} are allowed")
    if any(not tally[kind, Judgement.RIGHT] for kind in Kind):
        wrong.append("a kind of pod was never judged: the soak has shown nothing")
    return Outcome(
        seed=seed,
        seconds=round(seconds, 1),
        answers={kind.value: {each.value: tally[kind, each] for each in Judgement} for kind in Kind},
        faults=dict(Counter(faults.done)),  # asdict cannot copy a Counter
        memory_mib=(round(watch.memory_mib[0], 1), round(watch.memory_mib[-1], 1)),
        bugs=watch.bugs,
        violations=tuple(wrong),
    )


def _describe(call: Call, windows: Sequence[Window]) -> str:
    during = ", ".join(f"{each.down} down" for each in windows if each.overlaps(call)) or "no fault"
    what = call.message or ("stored" if call.answer.ok else "no answer")
    way = "dry run" if call.dry_run else "create"
    return f"{call.kind} pod, {way}, {during}: {call.answer.status} {what[:300]}"


def table(result: Outcome) -> str:
    rows = [f"{'pods':<10}" + "".join(f"{each.value:>10}" for each in Judgement)]
    rows += [
        f"{kind:<10}" + "".join(f"{number:>10,}" for number in row.values()) for kind, row in result.answers.items()
    ]
    rows += [f"\nfaults: {', '.join(f'{number} x {name}' for name, number in result.faults.items()) or 'none'}"]
    rows += [f"memory of the replica that was never killed: {result.memory_mib[0]} -> {result.memory_mib[1]} MiB"]
    rows += [f"5xx answers of Halfcard: {result.bugs}", f"violations: {len(result.violations)}"]
    return "\n".join([*rows, *(f"  {each}" for each in result.violations[:_SHOWN])])


def soak(cluster: Cluster, seconds: float, seed: int) -> Outcome:
    cluster.create_namespace(_SPACE)
    installation = Installation(cluster)
    for _ in range(2):
        installation.add_replica()
    installation.register()
    watch, load, random = Watch(installation), Load(cluster), Random(seed)
    faults = Faults(installation, random, watch.look)
    begin = time.monotonic()
    with Hammer(load.once):
        for _ in _intervals(begin + seconds, random, watch):
            faults.next()
            say(f"  {time.monotonic() - begin:.0f} of {seconds:.0f} s, {len(load.calls):,} calls, {faults.done[-1]}")
    watch.look()
    return outcome(seed, time.monotonic() - begin, load.calls, faults, watch)


def _intervals(deadline: float, random: Random, watch: Watch) -> Iterator[None]:
    """Yields after each interval without a fault but the last."""
    while (left := deadline - time.monotonic()) > 0:
        end = time.monotonic() + min(left, random.uniform(*_INTERVAL_S))
        while time.monotonic() < end:
            watch.look()
            time.sleep(1)
        if time.monotonic() < deadline:
            yield


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, metavar="N", help="default %(default)s")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="what breaks when, default %(default)s")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    wanted = _parser().parse_args(arguments)
    try:
        with Cluster() as cluster:
            result = soak(cluster, wanted.minutes * 60, wanted.seed)
    except (CannotStartError, NotReadyError) as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_CANNOT_START
    print(table(result), json.dumps(asdict(result), indent=2), sep="\n\n")
    return EXIT_REFUSED if result.violations else EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
