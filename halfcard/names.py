"""Every name Halfcard shares with the outside world: resources, annotations, labels, variables, ports and paths.

The law: a name that somebody else also spells is spelled here and nowhere else; a test looks for strays.
"""

from __future__ import annotations

from typing import Final

# --- resources, by the system that people bring them from ------------------------------------------------------------

TENCENT: Final = "tencent.com"
TUYA: Final = "tuya.com"

VCUDA_CORE_SUFFIX: Final = "/vcuda-core"  # per cent of one card; 100 and its multiples are whole cards
VCUDA_MEMORY_SUFFIX: Final = "/vcuda-memory"  # units of 256 MiB
VCUDA_CORE: Final = TENCENT + VCUDA_CORE_SUFFIX
VCUDA_MEMORY: Final = TENCENT + VCUDA_MEMORY_SUFFIX

TUYA_SGPU: Final = "tuya.com/sgpu"  # halves of distinct cards

ALIYUN_GPU_MEM: Final = "aliyun.com/gpu-mem"  # GiB or MiB, as the node's plugin was started
ALIYUN_GPU_COUNT: Final = "aliyun.com/gpu-count"

VOLCANO_GPU_MEMORY: Final = "volcano.sh/gpu-memory"  # MiB
VOLCANO_GPU_NUMBER: Final = "volcano.sh/gpu-number"  # whole cards

NVIDIA_GPU: Final = "nvidia.com/gpu"
NVIDIA_GPU_SHARED: Final = "nvidia.com/gpu.shared"  # a time-slicing replica under renameByDefault

HAMI_GPUMEM: Final = "nvidia.com/gpumem"  # MiB of each card
HAMI_GPUMEM_PERCENTAGE: Final = "nvidia.com/gpumem-percentage"
HAMI_GPUCORES: Final = "nvidia.com/gpucores"  # per cent of each card

# --- labels that NVIDIA's feature discovery puts on nodes ------------------------------------------------------------

NVIDIA_LABEL_MEMORY: Final = "nvidia.com/gpu.memory"  # MiB of one card
NVIDIA_LABEL_PRODUCT: Final = "nvidia.com/gpu.product"
NVIDIA_LABEL_COUNT: Final = "nvidia.com/gpu.count"
NVIDIA_LABEL_REPLICAS: Final = "nvidia.com/gpu.replicas"

# --- annotations -----------------------------------------------------------------------------------------------------

CORE_LIMIT_SUFFIX: Final = "/vcuda-core-limit"  # burst ceiling of the pod's containers, written by people

OWN_DOMAIN: Final = "halfcard.dev"
OWN_PREFIX: Final = "halfcard.dev/"
CORE_LIMIT_DEFAULTED: Final = "halfcard.dev/core-limit-defaulted"  # which core limits we wrote ourselves
QUOTA_TWINS: Final = "halfcard.dev/quota-twins"  # which requests.* keys of a quota we wrote ourselves

PREDICATE_SUFFIX: Final = "/predicate-"  # gpu-manager's record of node, time and cards
GPU_ASSIGNED_SUFFIX: Final = "/gpu-assigned"
ALIYUN_RECORD_PREFIX: Final = "ALIYUN_COM_GPU_MEM_"  # gpushare's record of card and amounts
OWNED_SUFFIXES: Final = (PREDICATE_SUFFIX, GPU_ASSIGNED_SUFFIX)
OWNED_PREFIXES: Final = (
    OWN_PREFIX,
    ALIYUN_RECORD_PREFIX,
    "hami.io/vgpu-",
    "hami.io/bind-",
    "volcano.sh/gpu-index",
)
CDI_PREFIX: Final = "cdi.k8s.io/"  # some runtimes hand out devices by annotation
MIRROR_POD: Final = "kubernetes.io/config.mirror"  # kubelet's copy of a static pod, nobody may change it

# --- environment of containers ---------------------------------------------------------------------------------------

VISIBLE_DEVICES: Final = "NVIDIA_VISIBLE_DEVICES"
SEES_NOTHING: Final = "void"  # tells NVIDIA's runtime to leave the container alone
SEES_NOTHING_VALUES: Final = frozenset({"void", "none"})

LIBRARY_PATH: Final = "LD_LIBRARY_PATH"

WIDENING_ENV: Final = {
    VISIBLE_DEVICES: SEES_NOTHING_VALUES | {""},
    "NVIDIA_MIG_CONFIG_DEVICES": frozenset({""}),
    "NVIDIA_MIG_MONITOR_DEVICES": frozenset({""}),
    "NVIDIA_IMEX_CHANNELS": frozenset({""}),
}
"""Variables by which NVIDIA's runtime decides what a container sees, and the values that show nothing."""

LOOSENING_ENV: Final = frozenset(
    {
        "LD_PRELOAD",
        "LD_AUDIT",
        "CUDA_DISABLE_CONTROL",
        "CUDA_OVERSUBSCRIBE",
        "CUDA_DEVICE_SM_LIMIT",
        "CUDA_DEVICE_MEMORY_LIMIT",
        "CUDA_DEVICE_MEMORY_SHARED_CACHE",
        "CUDA_TASK_PRIORITY",
        "GPU_CORE_UTILIZATION_POLICY",
        "CGPU_DISABLE",
    }
)
"""Variables that switch off or feed the libraries that hold a container to its share."""

LOOSENING_ENV_PREFIXES: Final = (
    "HALFCARD_",
    ALIYUN_RECORD_PREFIX,
    "CUDA_DEVICE_MEMORY_LIMIT_",
    "VOLCANO_GPU_",
)

# --- paths of nodes that lead around the scheduler -------------------------------------------------------------------

DEVICE_FILES: Final = "/dev/nvidia"  # and everything that begins so
PROTECTED_PATHS: Final = (
    DEVICE_FILES,
    "/dev/char",  # links to the same devices by number
    "/var/lib/kubelet/device-plugins",
    "/var/lib/kubelet/pod-resources",
    "/var/lib/kubelet/plugins_registry",
    "/var/lib/halfcard",
    "/etc/halfcard",
    "/etc/gpu-manager",
    "/etc/cdi",
    "/run/cdi",
    "/run/containerd",
    "/run/crio",
    "/run/docker.sock",
    "/run/halfcard",
    "/run/k3s/containerd",
    "/run/nvidia",
    "/run/nvidia-persistenced",
    "/run/nvidia-fabricmanager",
)
DEVICE_LIST_MOUNT: Final = "/run/nvidia-container-devices"  # NVIDIA's list of devices by mounts

# --- where Halfcard itself lives and listens -------------------------------------------------------------------------

NAMESPACE: Final = "halfcard-system"
ADMISSION_SERVICE: Final = "halfcard-admission"
NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"  # the API server puts it on every namespace
KUBE_SYSTEM: Final = "kube-system"
DEFAULT_SCHEDULER: Final = "default-scheduler"

ADMISSION_PORT: Final = 8443
EXTENDER_PORT: Final = 3456
STATUS_PORT: Final = 8080

MUTATE_PODS_PATH: Final = "/mutate/pods"
VALIDATE_PODS_PATH: Final = "/validate/pods"
MUTATE_WORKLOADS_PATH: Final = "/mutate/workloads"
VALIDATE_WORKLOADS_PATH: Final = "/validate/workloads"
MUTATE_QUOTAS_PATH: Final = "/mutate/resourcequotas"


def webhook_name(path: str) -> str:
    """What the API server calls the webhook behind a path, and kubectl shows: mutate-pods.halfcard.dev."""
    return f"{path.strip('/').replace('/', '-')}.{OWN_DOMAIN}"


HEALTH_PATH: Final = "/healthz"
READY_PATH: Final = "/readyz"
METRICS_PATH: Final = "/metrics"
