"""`python -m quota`: keeps the ledgers of GpuQuotas true; the webhook promises, and this process settles.

One replica leads:

- `pods`: the pods that hold something, as they are stored.
- `keeper`: one ledger: taken over, folded, and rid of promises whose pods never came.
- `keeping`: all ledgers, as quotas and pods come and go.
- `status`: what a quota's status says (pure); `reporting` writes it.
- `native`: Kubernetes' own quotas: which of them count nothing, and which count wrong.
- `process`: what runs beside what; `__main__` wires it.
"""
