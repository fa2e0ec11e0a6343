"""`python -m cli.installation_test`: tests an installation from a pod of its image; `helm test` runs it.

Two pods are created as a dry run, so nothing is stored: the API server must answer as the settings say. Every ready
replica of the extender must answer a client with the scheduler's certificate.

Exit codes: 0 everything answers, 1 something does not, 2 bad arguments or settings.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import msgspec

from admission.policy_settings import policy_of
from halfcard import names
from halfcard.cluster_view import ClusterView
from halfcard.exit_codes import EXIT_OK, EXIT_REFUSED, EXIT_USAGE, UnreadableError, UnusableInputError
from halfcard.patches import apply
from kube.api.access import from_service_account
from kube.api.calls import ApiCalls
from kube.api.kubeconfig import from_kubeconfig
from settings.settings_file import load_settings

from .judge import Judge

_DRY_RUN: Final = "/api/v1/namespaces/{}/pods?dryRun=All"
_SLICES: Final = (
    f"/apis/discovery.k8s.io/v1/namespaces/{names.NAMESPACE}/endpointslices"
    f"?labelSelector=kubernetes.io%2Fservice-name%3D{names.EXTENDER_SERVICE}"
)
_EXTENDER: Final = f"{names.EXTENDER_SERVICE}.{names.NAMESPACE}.svc"
_TIMEOUT_S: Final = 5.0
_SHARE: Final = {names.VCUDA_CORE: "0.3", names.VCUDA_MEMORY: "5Gi"}
_EVERY_CARD: Final = [{"name": names.VISIBLE_DEVICES, "value": "all"}]

Answers = AsyncIterator[tuple[str, str]]
"""What was tested, and what is wrong; empty if nothing is."""


def samples(namespace: str) -> Iterator[dict[str, Any]]:
    """Yields a pod that is repaired with the default settings, and one that is refused."""
    for name, asked in (("repaired", {"resources": {"limits": _SHARE}}), ("refused", {"env": _EVERY_CARD})):
        container = {"name": "main", "image": "none.invalid/none", **asked}
        metadata = {"name": f"halfcard-test-{name}", "namespace": namespace}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


async def webhooks(calls: ApiCalls, judge: Judge) -> Answers:
    for sample in samples(judge.namespace):
        answer = await calls.post(_DRY_RUN.format(judge.namespace), json.dumps(sample).encode())
        wanted = judge.review(sample).verdict
        stored = answer.status == HTTPStatus.CREATED
        what = f"dry run of pod {judge.namespace}/{sample['metadata']['name']}"
        if stored != wanted.allowed or not all(each.code in answer.message() for each in wanted.problems):
            expected = "admitted" if wanted.allowed else f"refused: {'; '.join(map(str, wanted.problems))}"
            yield what, f"got {answer.status} {'' if stored else answer.message()}; it must be {expected}"
        elif stored and _resources(json.loads(answer.body)) != _resources(apply(sample, wanted.changes)):
            yield what, f"its resources are {_resources(json.loads(answer.body))}: it was not repaired"
        else:
            yield what, ""


def _resources(pod: Mapping[str, Any]) -> Any:
    return pod["spec"]["containers"][0].get("resources")


async def extender(calls: ApiCalls, tls: ssl.SSLContext) -> Answers:
    answer = await calls.get(_SLICES)
    if answer.status != HTTPStatus.OK:
        yield "replicas of the extender", f"got {answer.refusal()}"
        return
    addresses = [*_ready(msgspec.json.decode(answer.body))]
    if not addresses:
        yield "replicas of the extender", "none is ready"
    for address, port in addresses:
        yield f"extender at {address}:{port}", await asyncio.to_thread(_call, address, port, tls)


def _ready(slices: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for each in slices["items"]:
        for endpoint in each.get("endpoints") or ():
            if endpoint.get("conditions", {}).get("ready"):
                yield endpoint["addresses"][0], each["ports"][0]["port"]


def _call(address: str, port: int, tls: ssl.SSLContext) -> str:
    """Returns what is wrong with the answer of one replica."""
    connection = http.client.HTTPConnection(address, port, timeout=_TIMEOUT_S)
    try:
        plain = socket.create_connection((address, port), timeout=_TIMEOUT_S)
        connection.sock = tls.wrap_socket(plain, server_hostname=_EXTENDER)
        connection.request("GET", names.VERSION_PATH)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return f"no answer: {error}"
    finally:
        connection.close()
    return "" if status == HTTPStatus.OK else f"it answered {status}"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m cli.installation_test", description=__doc__.splitlines()[0])
    parser.add_argument("--settings", type=Path, required=True, metavar="FILE", help="the installation's settings")
    parser.add_argument("--tls-dir", type=Path, required=True, metavar="DIR", help="the scheduler's certificate")
    parser.add_argument("--namespace", required=True, metavar="NAME", help="where the pods are created as a dry run")
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="default: the pod's service account")
    arguments = parser.parse_args(argv)
    try:
        return asyncio.run(_run(arguments))
    except (UnusableInputError, UnreadableError) as error:
        print(f"cannot test: {error}", file=sys.stderr)
        return EXIT_USAGE


async def _run(arguments: argparse.Namespace) -> int:
    judge = Judge(policy_of(load_settings(arguments.settings)), ClusterView(), arguments.namespace)
    calls = ApiCalls(from_kubeconfig(arguments.kubeconfig) if arguments.kubeconfig else from_service_account())
    tls = ssl.create_default_context(cafile=str(arguments.tls_dir / "ca.crt"))
    tls.load_cert_chain(arguments.tls_dir / "tls.crt", arguments.tls_dir / "tls.key")
    wrong = 0
    for answers in (webhooks(calls, judge), extender(calls, tls)):
        async for what, why in answers:
            print(f"{what}: {why or 'ok'}", flush=True)
            wrong += bool(why)
    calls.close()
    return EXIT_REFUSED if wrong else EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
