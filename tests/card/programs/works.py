"""`works.py WORK SECONDS`: multiplies matrices, or launches small kernels, for so long, or a fixed amount for 0.

Prints the rounds per second, and the seconds.
"""

import itertools
import json
import sys
import time

import torch  # type: ignore[import-not-found]  # in the environment of the tries alone

ROUNDS = 200
SIZE = 4096
LAUNCHES = 1000


def matmul(of: torch.Tensor) -> None:
    torch.matmul(of, of)


def launches(of: torch.Tensor) -> None:
    small = of[0]
    for _ in range(LAUNCHES):
        small.add_(1)


work = {"matmul": matmul, "launches": launches}[sys.argv[1]]
seconds = float(sys.argv[2])
matrix = torch.zeros(SIZE, SIZE, device="cuda", dtype=torch.float16)
for _ in range(ROUNDS // 10):
    work(matrix)
torch.cuda.synchronize()
began = time.monotonic()
for done in itertools.count(1):
    work(matrix)
    if done % 10 == 0:
        torch.cuda.synchronize()
        took = time.monotonic() - began
        if took >= seconds and done >= ROUNDS:
            break
sys.stdout.write(json.dumps({"rate": done / took, "seconds": took * ROUNDS / done}) + "\n")
