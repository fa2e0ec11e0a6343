"""Halfcard's own CAs and what they sign: made on first start, renewed in place, in a folder or in Secrets.

The decision is the same for both, and pure:

- `server_names`: DNS names and addresses as people write them
- `flaws`: what certificates say, and what is wrong with them
- `rules`: how long they live, and what those of one CA are to be
- `plan`: what is needed now, and why; `steps` are its answers
- `authority`: makes certificates

A folder, for a server that runs beside it:

- `folder`: reads, decides, writes; safe beside other processes and against a crash at any point
- `keeper`: looks again every minute, for as long as a server runs

An installation, by `python -m certs keep`:

- `chains`: which Secrets there are, and which webhook configurations trust them
- `objects`: these objects as the API server keeps them; `store` reads and writes them
- `upkeep`: one look: reads, decides, writes, by compare-and-set
- `tending`: again and again, with `metrics` and `telling` of what was done
- `process`: what runs beside what; `__main__` wires it
"""
