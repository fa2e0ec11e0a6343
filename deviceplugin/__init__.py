"""The node agent: hands every container the cards that were recorded for it, and says what the node has.

- `gpus`: the driver, through NVML: what cards there are, what runs on them, what goes wrong
- `kubelet`: its two sockets, and the plugins that we register there
- `supply` and `ids`: how much of each resource the node offers, and under which device ids
- `identity`, `limits`, `cdi`, `slots`: who is starting, what it gets, and how the runtime is told
- `desk`: answers Allocate and PreStartContainer
- `pods`, `announcing`: the node's pods as the API server has them, and what is written about the node there
- `cgroups`, `usage`, `metrics`, `app`: who uses what, for people and Prometheus
"""
