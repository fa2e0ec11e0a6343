"""What a GPU request, a card and a cluster are. No I/O, no clock, no logging, no environment.

Glossary, in the order in which a pod meets them:

quantity    an amount in Kubernetes' spelling, exact (`quantity.py`)
dialect     one system's words for GPUs: resource names, units, rules (`dialects/`)
ask         one resource of one container: what is written, what it means (`asks.py`)
claim       what a container needs, whatever the dialect (`claims.py`)
slot        what carries a container's identity to the node where its amounts cannot (`slots.py`)
share       a claim on part of a card; the opposite of exclusive
problem     a rule broken in one place: where, got, rule, fix (`problems.py`)
cost        what a pod is charged for in a quota (`cost.py`)
ledger      what pods hold of a budget and what they were promised (`ledger.py`, `promises.py`)
patch       the changes made to an object, as JSON Patch (`patches.py`)
cluster     what is known of nodes, cards and quotas right now (`cluster.py`)
names       every name the outside world also spells (`names.py`)
"""

__version__ = "0.1.0"
