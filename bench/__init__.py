"""What Halfcard costs, as ratios to a floor that the same run measures; and how it handles malformed bodies.

- `python -m bench` prints a table and writes JSON; targets are printed as met or missed, timing never fails
- `python -m bench.fuzz` sends malformed bodies and exits 1 on a violation
- `python -m bench.agent` does the same for the node agent, `python -m bench.agent_starts` with a real kubelet
- `reviews`, `malformed`: the bodies that are sent
- `servers`, `connection`: the service as a child on a core of its own, and the cheap client that calls it
- `throughput`, `go_handler`, `linearity`, `dense_bodies`, `memory`, `start`, `offline`: one measurement
  each; `figures` prints them
"""
