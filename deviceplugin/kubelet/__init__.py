"""kubelet's sockets: plugins register at one, the other lists which container holds which device ids.

- `channel`, `single_flight`: calls to its sockets, shared by concurrent callers
- `pod_resources`, `checkpoint`, `id_holders`: which container holds which ids
- `plugin`: the server that kubelet calls for one resource
- `registration`, `kubelet_socket`: registering, and noticing when to register again
- `served_resource`, `plugins`: one resource, and all of them, registered as long as they are offered
- `device_plugin_pb2`, `pod_resources_pb2`: made from .proto files by `python -m tests.deviceplugin.kubelet.generate`
"""

import os

os.environ.setdefault("GRPC_VERBOSITY", "NONE")
"""gRPC reads it at import; without it, gRPC writes its own lines into our log."""
