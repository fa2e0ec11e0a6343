"""Builds the cluster's programs once into the cache.

Law: one builder at a time; a program appears in the cache whole or not at all.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..errors import CannotStartError
from .binaries import GROUPS, MODULES, ProgramGroup, build_flags, build_folder, cache_folder
from .toolchain import go

_REPORT_EVERY_S = 15.0
# GOTOOLCHAIN and GOWORK: what is built depends on the pinned module alone, not on the machine's settings.
_ENVIRONMENT = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}


def minutes(seconds: float) -> str:
    return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


def progress_line(*, compiled: int, total: int, elapsed_s: float) -> str:
    """Says how many packages are done and left; linking follows the last one, so the line promises no end."""
    left = f"about {minutes(elapsed_s / compiled * (total - compiled))} of compiling left" if compiled else "starting"
    return f"  {compiled} of {total} packages, {minutes(elapsed_s)} gone, {left}, then linking"


def missing_programs(group: ProgramGroup) -> dict[str, str]:
    folder = build_folder(group.module)
    return {program: package for program, package in group.packages.items() if not (folder / program).is_file()}


@contextmanager
def _only_builder() -> Iterator[None]:
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another build is running: waiting for it to end", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _go(arguments: Sequence[str], *, module: str, stderr: int | None = None) -> subprocess.Popen[str]:
    environment = os.environ | _ENVIRONMENT
    return subprocess.Popen(
        [str(go()), *arguments],
        cwd=MODULES / module,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=stderr,
    )


def _packages_to_compile(group: ProgramGroup, packages: Sequence[str]) -> int:
    """Counts the packages that are not compiled yet; downloads the sources, whose imports `go list` needs."""
    template = "{{if .Stale}}{{.ImportPath}}{{end}}"
    listing = _go(["list", *build_flags(group.module), "-deps", "-f", template, *packages], module=group.module)
    names, _ = listing.communicate()
    if listing.returncode != 0:
        raise CannotStartError(f"`go list` failed in {MODULES / group.module}: the lines above say why.")
    return len(set(names.split()))


def _compile(group: ProgramGroup, packages: Sequence[str], *, into: Path) -> None:
    print("  fetching the sources (about 1 minute the first time) and counting packages", flush=True)
    total = _packages_to_compile(group, packages)
    print(f"  {total} packages are not in Go's cache yet", flush=True)
    started = reported = time.monotonic()
    flags = [*build_flags(group.module), "-v", "-o", f"{into}/"]
    build = _go(["build", *flags, *packages], module=group.module, stderr=subprocess.STDOUT)
    lines: list[str] = []
    assert build.stdout is not None
    for line in build.stdout:  # one line a compiled package
        lines.append(line)
        now = time.monotonic()
        if now - reported >= _REPORT_EVERY_S:
            reported = now
            print(
                progress_line(compiled=len(lines), total=max(total, len(lines)), elapsed_s=now - started),
                flush=True,
            )
    if build.wait() != 0:
        raise CannotStartError(f"`go build` failed in {MODULES / group.module}:\n{''.join(lines[-20:])}")


def _built_name(package: str) -> str:
    """Returns the name that Go gives a program: its package's last element that is not a major version."""
    parts = package.split("/")
    return parts[-2] if parts[-1].startswith("v") and parts[-1][1:].isdigit() else parts[-1]


def build(name: str) -> None:
    group = GROUPS[name]
    folder = build_folder(group.module)
    folder.mkdir(parents=True, exist_ok=True)
    with _only_builder():
        missing = missing_programs(group)
        if not missing:
            print(f"{name}: already built in {folder}")
            return
        started = time.monotonic()
        print(
            f"{name}: building {', '.join(missing)} into {folder}\n"
            f"  a cold build takes about {group.minutes} minutes on 2 cores, {group.gigabytes} GB of disk, "
            f"mostly Go's own caches; {shutil.disk_usage(folder).free >> 30} GB are free",
            flush=True,
        )
        scratch = folder / "unfinished"
        shutil.rmtree(scratch, ignore_errors=True)  # of a builder that was killed
        scratch.mkdir()
        _compile(group, sorted(missing.values()), into=scratch)
        for program, package in missing.items():
            (scratch / _built_name(package)).replace(folder / program)
        scratch.rmdir()
        print(f"{name}: built in {minutes(time.monotonic() - started)}", flush=True)
