"""Captures multiplications in a graph, which allocate from its own pool, and compares what its replays compute."""

import json
import sys

import torch  # type: ignore[import-not-found]  # in the environment of the tries alone

REPLAYS = 200

left = torch.randn(1024, 1024, device="cuda")
right = torch.randn(1024, 1024, device="cuda")


def work() -> torch.Tensor:
    return torch.relu(left @ right) @ right


warm = torch.cuda.Stream()
with torch.cuda.stream(warm):
    work()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    captured = work()
for _ in range(REPLAYS):
    graph.replay()
torch.cuda.synchronize()
sys.stdout.write(json.dumps({"right": bool(torch.allclose(captured, work())), "replays": REPLAYS}) + "\n")
