"""A container with a share on a node with the stand-in driver: its files in one folder, and programs that run there."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from halfcard.isolation.shared_files import AccountCard, CardControl, new_account, read_account, write_control
from tests.nvml.build import compiler

from .build import HERE, PRODUCT, SANITIZED, Machine, build

MIB: Final = 1 << 20
CARD_MIB: Final = 16000
CONTEXT_MIB: Final = 100
LIMIT_MIB: Final = 1000
OUT_OF_MEMORY: Final = 2
CARDS: Final = 2
CARD_USERS: Final = 512 * 16
"""The end of a card in memory (card.h)."""

DRIVER_SOURCES: Final = ("driver.c", "driver_launches.c", "gpu.c", "card.c", "process.c")
DRIVER_FLAGS: Final = ("-Wl,-soname,libcuda.so.1", "-Wl,-Bsymbolic")


class Driver:
    """The node's programs: the library, and the driver that it stands before; built once for all tests of a module."""

    def __init__(self, folder: Path, *flags: str, sanitizers: Sequence[str] = (), machine: Machine = HERE) -> None:
        self.folder = folder
        self._variables = _sanitizer() if sanitizers == SANITIZED else {}
        here = f'-DRUN_FOLDER="{folder}"'
        (folder / "driver").mkdir(parents=True)
        build(folder / "made.so", DRIVER_SOURCES, here, *DRIVER_FLAGS, *flags, machine=machine)
        (folder / "made.so").rename(folder / "driver" / "libcuda.so.1")
        made = build(folder / "make_cards", ["make_cards.c", "card.c", "process.c"], here, machine=machine)
        self._make_cards = [*machine.runner, str(made)]
        make = ["make", "-s", "-C", str(PRODUCT), f"RUN_FOLDER={folder}", f"OUT={folder}/library"]
        make += [f"CC={machine.compiler[0]}"] if machine.compiler else []
        make += [f"CFLAGS=-O1 -g {' '.join(sanitizers)}"] if sanitizers else []
        subprocess.run(make, check=True)

    @property
    def library(self) -> Path:
        return self.folder / "library" / "libcuda.so.1"

    def container(self, *cards: CardControl) -> Container:
        """Empties the cards, and makes the files of a new container."""
        memory = subprocess.run([*self._make_cards, str(CARD_MIB)], capture_output=True, check=True).stdout
        (self.folder / "cards").write_bytes(memory)
        (self.folder / "account").write_bytes(new_account())
        (self.folder / "control").write_bytes(write_control(cards or (share(0), share(1))))
        return Container(self.folder, self._variables)


def share(device: int, memory_mib: int = LIMIT_MIB) -> CardControl:
    """The limit of a card of the stand-in driver."""
    uuid = bytes([ord("A") + device]) * 16
    return CardControl(uuid, memory_mib * MIB, context=CONTEXT_MIB * MIB)


def _sanitizer() -> dict[str, str]:
    """Returns the variables of a program that loads a library with sanitizers, and was built without them."""
    asked = [*compiler(), "-print-file-name=libasan.so"]
    runtime = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    return {"LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0"}  # Python leaks on purpose


class Container:
    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self._folder = folder
        self._variables = variables

    @property
    def cards(self) -> tuple[AccountCard, ...]:
        return read_account((self._folder / "account").read_bytes(), "account")

    def used_mib(self, card: int = 0) -> int:
        """What the account shows, which must be what living processes use of both cards of the driver."""
        shown = [sum(row.bytes for row in each.rows.values()) for each in self.cards]
        assert sum(shown) == sum(self._on_cards())
        return shown[card] // MIB

    def _on_cards(self) -> Iterator[int]:
        data = (self._folder / "cards").read_bytes()
        for end in range(len(data) // CARDS, len(data) + 1, len(data) // CARDS):
            yield sum(size for _, size in struct.iter_unpack("=QQ", data[end - CARD_USERS : end]))

    @contextmanager
    def program(
        self, way: str = "libcuda.so.1", *, with_context: bool = True, bare: bool = False, preloaded: Path | None = None
    ) -> Iterator[Program]:
        """Starts a program; a bare one has no variables."""
        command = [sys.executable, str(Path(__file__).with_name("client.py")), way]
        environment = {} if bare else {"LD_LIBRARY_PATH": str(self._folder / "library"), **self._variables}
        environment |= {"LD_PRELOAD": str(preloaded)} if preloaded else {}
        with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            try:
                program = Program(process)
                if with_context:
                    program.get("cuInit", 0)
                    program.get("cuCtxSetCurrent", program.get("cuDevicePrimaryCtxRetain", None, 0))
                yield program
            finally:
                process.kill()


class Program:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def call(self, name: str, *arguments: int | bytes | None) -> list[int]:
        """Returns the error, and what the function wrote."""
        self.send(name, *arguments)
        assert self.process.stdout is not None
        answer: list[int] = json.loads(self.process.stdout.readline())
        return answer

    def send(self, name: str, *arguments: int | bytes | None) -> None:
        line = json.dumps([name, *(one.hex() if isinstance(one, bytes) else one for one in arguments)])
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def get(self, name: str, *arguments: int | bytes | None) -> int:
        """Returns the first number that the function wrote; the call must succeed."""
        error, *written = self.call(name, *arguments)
        assert error == 0, (name, arguments, error)
        return written[0] if written else 0

    def error(self, name: str, *arguments: int | bytes | None) -> int:
        return self.call(name, *arguments)[0]

    def allocate(self, mib: int) -> int:
        return self.get("cuMemAlloc_v2", None, mib * MIB)
