"""Makes containerd's configuration and that of the pods' network."""

from __future__ import annotations

import json
from pathlib import Path

from halfcard import names

from ..errors import CannotStartError
from .images import PAUSE

SOCKET = "/run/containerd/containerd.sock"  # every node has a /run of its own
SNAPSHOTTER = "native"  # copies layers: works on every file system, and ours are small
_PLUGIN_FOLDERS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))


def network_plugins() -> Path:
    for folder in _PLUGIN_FOLDERS:
        if (folder / "bridge").is_file():
            return folder
    raise CannotStartError("no CNI plugins: run `apt-get install containernetworking-plugins`.")


def configuration(*, root: Path, networks: Path) -> str:
    """Returns containerd's configuration. The plugin `opt` would create a folder on the machine; OOM scores can be
    lowered only with CAP_SYS_RESOURCE.
    """
    return f"""
version = 3
root = "{root}"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt"]

[grpc]
address = "{SOCKET}"

[plugins."io.containerd.metadata.v1.bolt"]
no_sync = true

[plugins."io.containerd.cri.v1.images"]
snapshotter = "{SNAPSHOTTER}"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{PAUSE}"

[plugins."io.containerd.cri.v1.runtime"]
cdi_spec_dirs = {list(names.CDI_FOLDERS)}
restrict_oom_score_adj = true
disable_apparmor = true
netns_mounts_under_state_dir = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["{network_plugins()}"]
conf_dir = "{networks}"
"""


def bridge(*, pods: str, leases: Path) -> str:
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": pods}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": str(leases),
    }
    plugin = {"type": "bridge", "bridge": "pods", "isGateway": True, "ipam": addresses}
    return json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": [plugin]})
