"""The scheduler extender: chooses node and cards of each pod from memory, and explains the choice.

- `state`: nodes, pods and their cards, updated by `watches`
- `scheduler_api`: kube-scheduler's calls and their JSON; cached answers for each demand, of which only changed nodes
  are judged again
- `bind`: binds pods, the only part that writes nodes and records of pods
- `packing`: the table of policies, and the expected pods
- `explain`: why a pod is where it is, or what prevents it from being placed
- `refused`: what follows for unschedulable pods: requeue them once they fit, report or evict the pods that block them
- `process`, `app`: how the process is put together, and its HTTP routes
"""
