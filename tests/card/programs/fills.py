"""`fills.py FILL`: makes a context and, if FILL is 1, allocates until it is refused; waits to be ended."""

import json
import sys

import torch  # type: ignore[import-not-found]  # in the environment of the tries alone

STEP_MIB = 64

torch.cuda.init()
_, total = torch.cuda.mem_get_info()
kept = [torch.empty(1, device="cuda")]
taken = 0
try:
    while sys.argv[1] == "1":
        kept.append(torch.empty(STEP_MIB << 20, dtype=torch.uint8, device="cuda"))
        taken += STEP_MIB
except torch.cuda.OutOfMemoryError:
    pass
sys.stdout.write(json.dumps({"taken": taken, "total": total >> 20}) + "\n")
sys.stdout.flush()
sys.stdin.read()
