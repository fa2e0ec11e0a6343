"""`python -m quota`: the quota service. The webhook reserves in ledgers, and this process commits and expires
reservations.

One replica leads:

- `charged_pods`, `node_locations`, `usage_index`: the charges of stored pods, updated from watches
- `ledgers_controller`, `ledger_controller`: take ledgers over, commit what pods hold, expire reservations
- `loans`, `consistency_check`: loans between budgets, and a comparison with stored pods
- `gates`: removes scheduling gates in order, and makes controllers retry refused pods
- `reporting`: statuses, Events and exemptions
- `native`: Kubernetes' own quotas: which of them count nothing, and which count wrong
"""
