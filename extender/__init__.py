"""The scheduler extender: which node and which cards, in microseconds, from memory; and it can say why.

- `state`: nodes, pods and what lies where, kept from watches
- `answers`: for each shape of pod, which nodes can take it and what that is worth; only changed nodes are asked again
- `verbs`: filter, prioritize, preempt; `binding`: the one that writes
- `placement`: the table of policies
- `wire`, `app`: kube-scheduler's JSON, and HTTP
"""
