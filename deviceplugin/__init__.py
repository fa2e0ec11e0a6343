"""The node agent: gives every container the cards that were recorded for it, and publishes what the node has.

- `gpus`: the driver, through NVML: the cards, what runs on them, and their faults
- `kubelet`: its two sockets, its checkpoint, and the plugins that we register
- `allocate`: answers Allocate and PreStartContainer: which container starts, its cards and its limits
- `inject`: passes a grant to the runtime: CDI, or symlinks for old runtimes
- `adoption`: containers that another device plugin started before us
- `advertise`, `advertiser`: device ids for kubelet; inventory, totals and Events for the node object
- `usage`: which process uses how much of a card, for people and for Prometheus
- `app`, `self_signed`, `certificate`: its HTTP applications, and the certificate that it issues itself
- `node_pods`, `node_view`, `card_watch`: the state that all of them share
"""
