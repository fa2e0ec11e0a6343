"""How every HTTP process of Halfcard listens: rotating TLS, deadlines, a cap, a stop that fails no call.

- `address`: HOST:PORT as people write it
- `limits`: how long a client may take, and the pure verdict on one that takes longer
- `tls`, `certificate_pair`: certificate files that are swapped under load
- `connection`, `acceptor`, `listener`: one connection, one socket, all sockets of a process
- `lifecycle`: running or stopping; signals; the exit code
- `health`: /healthz, /readyz and /metrics for a plain listener
- `log`: one line per event
"""
