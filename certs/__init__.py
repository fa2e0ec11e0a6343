"""Halfcard's own CAs and certificates: created at the first start and renewed in place, in a folder or in Secrets.

The decision is the same for both, and pure:

- `server_names`: DNS names and addresses of a server
- `certificate_checks`: what certificates contain, and what is wrong with them
- `lifetimes`: how long they are valid, and the rules for the leaves of a CA
- `plan`: the next step, and why; `steps` are its results
- `authority`: creates certificates

A folder, for a server without a cluster:

- `folder/certificate_folder`: reads, decides, writes; safe with concurrent processes and against a crash at any point
- `folder/folder_renewal`: checks the folder every minute while a server runs

An installation, with `python -m certs keep`:

- `chains`: the Secrets, and the webhook configurations that trust them
- `objects`: these objects in the API server; `store` reads and writes them
- `reconcile`: one pass: reads, decides, writes the version that was read
- `webhooks`: registers the webhooks; `tokens` keeps the caller tokens of their paths
- `controller`: repeats both, with `metrics`, and `change_events` about changes
- `scheduler_restart`: restarts the chart's own kube-scheduler for a new CA
- `process`: the parts that run together; `__main__` starts them
"""
