"""kubelet's sockets: plugins register at one, the other tells which container holds which device ids.

- `channel`, `sharing`: how its sockets are called, by many at once
- `pod_resources`: who holds what
- `plugin`: the server that kubelet calls for one resource
- `registration`, `kubelet_socket`: how kubelet hears of it, and when it has to hear of it again
- `presence`, `plugins`: one resource, and all of them, at kubelet for as long as they are offered
- `device_plugin_pb2`, `pod_resources_pb2`: made of the .proto files by `python -m tests.deviceplugin.kubelet.generate`
"""

import os

os.environ.setdefault("GRPC_VERBOSITY", "NONE")
"""gRPC reads it when it is imported; else it writes lines of its own between those of our log."""
