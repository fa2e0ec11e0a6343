"""A node around an agent that is its own process: 200 pods of a stand-in API server, their ids at a stand-in kubelet.

What the agent sees is complete: TLS, lists and watches, pod-resources, eight cards of a stand-in driver, a process on
them for each container. Nothing ever happens there unless it is asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from devcluster.control_plane.network import free_port
from halfcard import names
from settings.installation import Settings
from tests.deviceplugin.kubelet.kubelet import Kubelet, entry, holder, kubelet
from tests.kube.object_server import merged
from tests.nvml.stand_in import StandIn, StandInProcess, stand_in_cards
from tests.serving.authority import Authority, write_pair
from tests.waiting import until

from .servers import ROOT, Server

Object = dict[str, Any]

NODE: Final = "gpu-a"
NAMESPACE: Final = "team"
PODS: Final = 200
CARDS: Final = 8
ASKS: Final = {names.VCUDA_CORE: 4, names.VCUDA_MEMORY: 12}
_OFFERED: Final = Settings().node_resources
_CARD_MIB: Final = 81559
_POD_BYTES: Final = 5000
_FIRST_PID: Final = 4_000_000
_WITHIN_S: Final = 30.0
_LOG_TAIL: Final = 3000
_LOCAL: Final = "127.0.0.1"


# --- what is on the node ----------------------------------------------------------------------------------------------


def _node() -> Object:
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "250"}
    info = {"containerRuntimeVersion": "containerd://2.4.2", "kubeletVersion": "v1.36.2"}
    return {
        "metadata": {"name": NODE, "uid": "node-uid", "resourceVersion": "1", "labels": {"kubernetes.io/os": "linux"}},
        "status": {"capacity": amounts, "allocatable": dict(amounts), "nodeInfo": info},
    }


def _pod(number: int) -> Object:
    """A running pod with a recorded card, as large as pods are after other programs have annotated them."""
    asks = {resource: str(amount) for resource, amount in ASKS.items()}
    record = json.dumps({"node": NODE, "cards": {"main": [str(number % CARDS)]}})
    metadata: Object = {
        "name": f"pod-{number}",
        "namespace": NAMESPACE,
        "uid": f"0f1a9f52-5c3e-4a0a-9d0e-{number:012x}",
        "resourceVersion": "1",
        "annotations": {names.PLACEMENT: record},
    }
    status = {"name": "main", "ready": True, "containerID": f"containerd://{number:064x}"}
    pod = {
        "metadata": metadata,
        "spec": {"nodeName": NODE, "containers": [{"name": "main", "resources": {"limits": asks, "requests": asks}}]},
        "status": {"phase": "Running", "containerStatuses": [status]},
    }
    metadata["managedFields"] = [{"manager": "kubelet", "fieldsV1": "f" * (_POD_BYTES - len(json.dumps(pod)))}]
    return pod


def ids_of(resource: str, number: int) -> list[str]:
    """The ids of one pod."""
    first = number * ASKS[resource]
    return [f"hc-{each}" for each in range(first, first + ASKS[resource])]


def _driver(folder: Path, pods: int) -> StandIn:
    driver = StandIn(folder, stand_in_cards(CARDS, model="NVIDIA H100 80GB HBM3", memory_mib=_CARD_MIB))
    devices = folder / "dev"
    devices.mkdir()
    for needed in names.CUDA_DEVICE_FILES:
        (devices / Path(needed).name).symlink_to("/dev/null")
    for at, card in enumerate(driver.cards):
        (devices / f"nvidia{card.minor}").symlink_to("/dev/null")
        mine = [StandInProcess(_FIRST_PID + number, 2000, 3) for number in range(at, pods, CARDS)]
        driver.processes(card.uuid, *mine)
    return driver


# --- the API server ---------------------------------------------------------------------------------------------------


@dataclass
class ApiServer:
    """Answers the requests of one agent; a watch stays silent while it is open."""

    objects: dict[str, Object]
    version: int = 1
    _open: set[asyncio.Task[None]] = field(default_factory=set)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii")
                length = next((line for line in head.split("\r\n") if line.lower().startswith("content-length:")), ":0")
                body = await reader.readexactly(int(length.partition(":")[2]))
                method, target, _ = head.split(" ", 2)
                await self._answer(writer, method, target, body)
                if "watch=1" in target:
                    await reader.read()  # until the agent goes
                    break
        writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, method: str, target: str, body: bytes) -> None:
        if "watch=1" in target:
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        else:
            status, found = self._found(method, urlsplit(target).path, json.loads(body or b"{}"))
            written = json.dumps(found).encode()
            writer.write(b"HTTP/1.1 %d -\r\nContent-Length: %d\r\n\r\n" % (status, len(written)) + written)
        await writer.drain()

    def _found(self, method: str, path: str, sent: Object) -> tuple[int, Object]:
        if method == "POST":
            return 201, sent
        if method == "PATCH":
            return 200, self._patch(path.removesuffix("/status"), sent)
        if path in self.objects:
            return 200, self.objects[path]
        kind = path.rpartition("/")[2]
        items = [each for name, each in self.objects.items() if name.rpartition("/")[0].endswith(kind)]
        return 200, {"metadata": {"resourceVersion": str(self.version)}, "items": items}

    def _patch(self, path: str, sent: Object) -> Object:
        self.version += 1
        after: Object = merged(self.objects[path], sent)
        after["metadata"]["resourceVersion"] = str(self.version)
        self.objects[path] = after
        return after


@contextlib.asynccontextmanager
async def _api_server(folder: Path, pods: int) -> AsyncIterator[Path]:
    """Writes the kubeconfig of the stand-in API server."""
    objects = {f"/api/v1/nodes/{NODE}": _node()}
    objects |= {f"/api/v1/namespaces/{NAMESPACE}/pods/pod-{number}": _pod(number) for number in range(pods)}
    authority = Authority()
    files = write_pair(folder, authority.issue())
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.cert, files.key)
    server = await asyncio.start_server(ApiServer(objects).handle, _LOCAL, 0, ssl=context, limit=2**20)
    (folder / "ca.crt").write_bytes(authority.cert)
    yield _kubeconfig(folder, server.sockets[0].getsockname()[1])
    server.close()


def _kubeconfig(folder: Path, port: int) -> Path:
    cluster = {"server": f"https://{_LOCAL}:{port}", "certificate-authority": "ca.crt"}
    content = {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [{"name": "it", "cluster": cluster}],
        "users": [{"name": "it", "user": {"token": "token"}}],
    }
    file = folder / "kubeconfig"
    file.write_text(json.dumps(content))
    return file


# --- the agent --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Node:
    """Starts its agent several times, one process at a time."""

    folder: Path
    kubelet: Kubelet
    kubeconfig: Path
    driver: StandIn
    pods: int

    @contextlib.asynccontextmanager
    async def agent(self, *arguments: str) -> AsyncIterator[Server]:
        """Waits until kubelet knows the agent and all its resources."""
        port = free_port(_LOCAL)
        await until(lambda: not self.kubelet.clients)  # kubelet has seen the last one end
        began = time.perf_counter()
        with _process(
            [*self._command(port), *arguments], self.driver.environment, self.folder / "agent.log"
        ) as process:
            await self._registered(process)
            yield Server(process, port, None, time.perf_counter() - began)

    def _command(self, port: int) -> list[str]:
        cdi, state, devices = (self.folder / name for name in ("cdi", "state", "dev"))
        return [
            *(sys.executable, "-m", "deviceplugin", "--node", NODE, "--kubeconfig", str(self.kubeconfig)),
            *("--http", f"{_LOCAL}:{port}", "--plain-metrics", "--https", f"{_LOCAL}:0"),
            *("--device-root", str(devices), "--cdi-dir", str(cdi)),
            *("--state-dir", str(state), "--run-dir", str(self.folder / "run")),
            *("--kubelet-plugins", str(self.kubelet.plugin_folder)),
            *("--pod-resources", str(self.kubelet.pod_resources)),
        ]

    async def _registered(self, process: subprocess.Popen[bytes]) -> None:
        def knows_all() -> bool:
            lists = [client.lists for client in self.kubelet.clients.values()]
            return process.poll() is not None or (len(lists) == len(_OFFERED) and all(lists))

        await until(knows_all, within_s=_WITHIN_S)
        if process.poll() is not None:
            raise RuntimeError((self.folder / "agent.log").read_text(encoding="utf-8")[-_LOG_TAIL:])


@contextlib.contextmanager
def _process(command: list[str], environment: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=errors, stderr=errors) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


@contextlib.asynccontextmanager
async def full_node(folder: Path, pods: int = PODS) -> AsyncIterator[Node]:
    async with kubelet(folder) as one, _api_server(folder, pods) as kubeconfig:
        one.holders = [
            holder(f"pod-{number}", [entry(each, *ids_of(each, number)) for each in ASKS]) for number in range(pods)
        ]
        yield Node(folder, one, kubeconfig, _driver(folder, pods), pods)
