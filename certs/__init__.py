"""Halfcard's own CA and the certificate its servers show, made on first start and renewed in place.

- `server_names`: DNS names and addresses as people write them
- `plan`: the pure decision: what the files of a folder need now, and why
- `authority`: makes certificates
- `folder`: reads, decides, writes; safe beside other processes and against a crash at any point
- `keeper`: looks again every minute, for as long as a server runs
"""
