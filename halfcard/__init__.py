"""The domain: GPU requests, cards, placement and quota as plain data and pure functions.

No I/O, no clock, no logging, no environment. All code, messages and pages use the words below, one word for one thing.
Where Kubernetes has a term, it is Kubernetes' own: reconcile, requeue, leader, informer, evict, scheduling gate.

Requests

quantity      an amount in Kubernetes' spelling, kept exact (`quantity.py`)
dialect       one system's resource names, units and rules, such as gpu-manager's (`dialects/`)
request       what one container writes under `resources` for one resource, and what it means (`pod/requests.py`)
claim         what one container needs, the same in every dialect (`claims.py`)
need          a claim with its container's place in the pod; the demand of a pod is all its needs and wishes
share         a claim on a part of one card; the opposite of a whole card
half          one of two equal parts of a card's memory, with its compute unlimited
time slice    one of N replicas of a card, without any limits; NVIDIA's time-slicing
core limit    the ceiling above its share that a container may burst to

Admission

admit         let a request to the API server pass; the opposite is refuse
refuse        deny a request to the API server, with all problems at once
repair        change a pod in the mutating webhook, where its meaning is unambiguous (`patches.py`)
problem       one rule broken in one place: where, got, rule, fix, code (`problems.py`)
warning       a sentence for kubectl about an object that is admitted
subject       what a rule judges: a pod with its requests and the context of the review
verdict       the answer to one review: admit or refuse, the patch, the problems and warnings
caller token  the secret first segment of a webhook's path, which proves that the API server calls (`caller_tokens.py`)
exempt        of a namespace or a user: rules or quotas do not apply

Cards and placement

card          one physical GPU (`cards.py`)
card mode     how a card is used now: free, shared, halves, time-sliced or exclusive
inventory     the node annotation in which the agent publishes its cards (`inventory.py`)
fit           of a pod: there is a layout of its claims on the cards of a node (`placing/`)
layout        which cards of a node each container gets
place         choose a node and a layout for a pod
policy        how layouts are rated: binpack, spread, fgd or default
record        the annotation that names the cards of a pod; written once, at bind
peer          another system that shares GPUs; its agents read a peer record (`dialects/record.py`)
room          what is free of a node's cards
bind          write a pod's node and record in one request to the API server
verb          one of kube-scheduler's four calls: filter, prioritize, bind, preempt
unschedulable  of a pod: no node fits it now
requeue       make kube-scheduler try a pod again
preempt       evict pods of lower priority so that a pod fits

On the node

agent         the device plugin and its reporting, one per node
allocate      answer kubelet's Allocate call: a slot, since the pod is not known yet
slot          the set of device ids that one container was allocated
grant         the cards, limits and files of a slot, written at PreStartContainer, when the container is known
advertise     publish devices to kubelet, and inventory and capacity to the node object
adopt         take over the pods that another device plugin started
container limits  the file in which a container and its isolation library read what it may use
account       the file in which a container's processes write what they use of their cards (`isolation/`)
control file  the read-only file in which the agent tells the isolation library limits and what it measured

Quota

budget        what one GpuQuota, ClusterGpuQuota or quota ConfigMap entry allows, and for whom (`quota/budgets.py`)
charge        what one pod uses of a budget (`quota/charge.py`)
ledger        the object that holds the state of one budget: committed and reserved amounts (`quota/ledger.py`)
commit        count the charge of a stored pod
reserve       set a charge aside for a pod that is not stored yet, or not bound yet
reservation   what was reserved; it is committed, released, or it expires (`quota/reservation_expiry.py`)
exceeded      of a budget: a charge does not fit; the pod is refused or waits
contended     of a budget: a charge does not fit only because of reservations; the call waits, or is to be tried again
gate          the scheduling gate of a pod that waits in the queue of a budget (`quota/queueing.py`)
cohort        budgets that lend each other what they do not use (`quota/lending.py`)
native quota  Kubernetes' own ResourceQuota (`quota/native_quota.py`)
drift         a native quota's `used` differs from what its pods add up to

Processes

leader        the replica that holds the Lease; it alone binds pods, or writes ledgers and statuses
fence         make a write of an earlier leader impossible before the next one decides
reconcile     compare what is wanted with what exists, and write the difference
informer      follows one collection of the API server and keeps the latest state
degraded      of a process or source: it runs on old state, and says so
finding       what a check of `halfcard doctor` found wrong
"""

__version__ = "0.1.0"
