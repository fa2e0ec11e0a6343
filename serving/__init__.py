"""Serves HTTP for every process of Halfcard: rotating TLS, deadlines, a connection limit, a stop that fails no call.

- `address`: parses HOST:PORT, and binds
- `client_limits`: how long a client may take, and the pure verdict on one that takes longer
- `tls`, `tls_context`, `certificate_pair`: certificate files that are replaced under load
- `connection`, `acceptor`, `listener`: one connection, one socket, all sockets of a process
- `background_jobs`: what runs next to the listeners
- `lifecycle`: running or stopping; signals; the exit code
- `health_endpoints`: /healthz, /readyz and /metrics for a plain listener
- `log`: one line per event
"""
