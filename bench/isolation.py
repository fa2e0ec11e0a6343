"""What the isolation library adds to a call of the driver: `make bench-isolation`.

The columns are of the same run, over a driver that does nothing: without the library, with a limit of memory, and with
one of cores as well. A call is timed in hundreds, and the best hundred of 2000 counts, so that a busy machine changes
little.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Final

from tests.isolation.build import build
from tests.isolation.node import Driver, share

GOALS_NS: Final = {
    "allocate-and-free": "160",
    "get-info": "-",
    "launch-graph": "20",
    "launch-kernel": "20",
    "any-other": "0",
}
"""What a call may cost more than without the library."""


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        driver = Driver(Path(scratch, "halfcard"))
        driver.container()
        nothing = build(Path(scratch, "nothing.so"), ["nothing.c"], "-O2", "-Wl,-soname,libcuda.so.1")
        bare = driver.folder / "driver" / "libcuda.so.1"
        nothing.rename(bare)
        cost = build(Path(scratch, "cost"), ["cost.c"], "-O2")
        without, limited = figures(cost, bare), figures(cost, driver.library)
        driver.container(share(0)._replace(share=1000))
        held = figures(cost, driver.library)
    print(f"{'call':20} {'bare':>8} {'memory':>8} {'more':>8} {'cores':>8} {'more':>8} {'goal':>8}  ns")
    for call, goal in GOALS_NS.items():
        bare_ns = without[call]
        more = "".join(f"{each[call]:8.1f} {each[call] - bare_ns:8.1f} " for each in (limited, held))
        print(f"{call:20} {bare_ns:8.1f} {more}{goal:>8}")


def figures(cost: Path, library: Path) -> dict[str, float]:
    words = subprocess.run([str(cost), str(library)], capture_output=True, text=True, check=True).stdout.split()
    return dict(zip(words[::2], map(float, words[1::2]), strict=True))


if __name__ == "__main__":
    main()
