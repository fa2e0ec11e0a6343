"""A program that uses CUDA by NVIDIA's cuda-python is held on each of its cards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from .node import CONTEXT_MIB, Driver, share
from .wheels import CUDA_PYTHON, unpacked_wheel


def test_cuda_python_gets_out_of_memory_and_sees_its_share(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "halfcard")
    container = driver.container(share(0, memory_mib=1000), share(1, memory_mib=700))
    variables = {
        "LD_LIBRARY_PATH": str(driver.library.parent),
        "PYTHONPATH": os.pathsep.join(str(unpacked_wheel(wheel)) for wheel in CUDA_PYTHON),
    }
    program = [sys.executable, str(Path(__file__).with_name("cuda_python.py"))]
    done = subprocess.run(program, env=variables, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [
        [["CUDA_ERROR_OUT_OF_MEMORY"] * 4, limit - CONTEXT_MIB, limit, "CUDA_SUCCESS"] for limit in (1000, 700)
    ]
    assert [sum(row.refused for row in card.rows.values()) for card in container.cards[:2]] == [4, 4]
