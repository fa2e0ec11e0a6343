"""Halfcard's own CAs and certificates: made at the first start, renewed in place, in a folder or in Secrets.

The decision is the same for both, and pure:

- `server_names`: DNS names and addresses as people write them
- `certificate_checks`: what certificates contain, and what is wrong with them
- `lifetimes`: how long they live, and the leaves of one CA
- `plan`: what is needed now, and why; `steps` are its results
- `authority`: creates certificates

A folder, for a server without a cluster:

- `certificate_folder`: reads, decides, writes; safe with concurrent processes and against a crash at any point
- `folder_renewal`: checks the folder every minute while a server runs

An installation, by `python -m certs keep`:

- `chains`: the Secrets, and the webhook configurations that trust them
- `objects`: these objects in the API server; `store` reads and writes them
- `reconcile`: one pass: reads, decides, writes, by compare-and-set
- `controller`: repeats that, with `metrics`, and with `secret_events` of what was done
- `process`: the parts that run together; `__main__` starts them
"""
