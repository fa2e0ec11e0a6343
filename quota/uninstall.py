"""`python -m quota.uninstall open|delete`: opens or deletes the pods behind a quota's gate when Halfcard is removed.

No other program would remove the gate. Exit codes: 0 no pod waits any more, 1 some still do, 2 bad arguments.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec

from halfcard import names
from halfcard.exit_codes import EXIT_OK, EXIT_REFUSED, EXIT_USAGE
from kube.api.access import AccessError, from_service_account
from kube.api.calls import ApiCalls, NoAnswerError
from kube.api.kubeconfig import from_kubeconfig
from serving.log import Log

from .gates.gate_admission import gate_removal, pod_path

_PENDING: Final = "/api/v1/pods?fieldSelector=status.phase%3DPending&limit=500"
_ROUNDS: Final = 20
_REST_S: Final = 2.0  # the API server goes on asking a webhook for a moment after it was taken away
_DONE: Final = (HTTPStatus.OK, HTTPStatus.NOT_FOUND)


class _Gate(msgspec.Struct):
    name: str


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    namespace: str
    uid: str
    resource_version: str


class _Spec(msgspec.Struct, rename="camel"):
    scheduling_gates: list[_Gate] = []


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec

    @property
    def gates(self) -> list[str]:
        return [gate.name for gate in self.spec.scheduling_gates]


class _Continued(msgspec.Struct):
    further: str = msgspec.field(default="", name="continue")


class _Pods(msgspec.Struct):
    items: list[_Pod]
    metadata: _Continued


async def finish(calls: ApiCalls, way: str, log: Log, *, rest_s: float = _REST_S) -> int:
    """Opens or deletes all gated pods; returns how many still wait after the last try."""
    waiting: Sequence[_Pod] = ()
    for _ in range(_ROUNDS):
        try:
            waiting = await _waiting(calls)
            if not waiting:
                return 0
            await asyncio.gather(*[_open_or_delete(calls, pod, way, log) for pod in waiting])
        except NoAnswerError as error:
            log.warning("gates not removed", why=str(error))
        await asyncio.sleep(rest_s)
    return len(waiting)


async def _waiting(calls: ApiCalls) -> list[_Pod]:
    found: list[_Pod] = []
    further = ""
    while True:
        answer = await calls.get(f"{_PENDING}&continue={quote(further, safe='')}" if further else _PENDING)
        if answer.status != HTTPStatus.OK:
            raise NoAnswerError(f"reading pods: {answer.status} {answer.message()}")
        page = msgspec.json.decode(answer.body, type=_Pods)
        found += [pod for pod in page.items if names.QUOTA_GATE in pod.gates]
        further = page.metadata.further
        if not further:
            return found


async def _open_or_delete(calls: ApiCalls, pod: _Pod, way: str, log: Log) -> None:
    meta = pod.metadata
    path = pod_path(meta.namespace, meta.name)
    removal = gate_removal(meta.uid, meta.resource_version, pod.gates)
    answer = await (calls.patch(path, removal) if way == "open" else calls.delete(path))
    if answer.status not in _DONE:
        title = f"{meta.namespace}/{meta.name}"
        log.warning("gate not removed", pod=title, why=f"{answer.status} {answer.message()}")


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    log = Log()
    try:
        access = from_kubeconfig(arguments.kubeconfig) if arguments.kubeconfig else from_service_account()
    except AccessError as error:
        log.error("cannot start", why=str(error))  # noqa: TRY400 - the sentence says it; a trace would hide it
        return EXIT_USAGE

    async def run() -> int:
        calls = ApiCalls(access)
        try:
            return await finish(calls, arguments.way, log)
        finally:
            calls.close()

    return EXIT_REFUSED if asyncio.run(run()) else EXIT_OK


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="python -m quota.uninstall", description=__doc__)
    found.add_argument("way", choices=("open", "delete"), help="what becomes of such pods")
    found.add_argument("--kubeconfig", type=Path, metavar="FILE", help="default: the pod's service account")
    return found


if __name__ == "__main__":
    sys.exit(main())
