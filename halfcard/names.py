"""Every name that Halfcard shares with other programs: resources, annotations, labels, variables, ports and paths.

Invariant: a name that another program also spells is spelled here and nowhere else; a test looks for strays.
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

NVIDIA_MIG: Final = "nvidia.com/mig-"  # and a profile: an instance of a card, given out by NVIDIA's plugin
VOLCANO_VGPU: Final = (
    "volcano.sh/vgpu-"  # number, memory, memory-percentage, cores: Volcano's second way, with HAMi's engine
)
KOORDINATOR_GPU: Final = "koordinator.sh/gpu"  # also -core, -memory, -memory-ratio and .shared
KAI_FRACTION: Final = "gpu-fraction"  # annotations of KAI Scheduler, which sees no resource
KAI_MEMORY: Final = "gpu-memory"

SLOT: Final = "halfcard.dev/slot"  # carries identity where amounts are too many to have device ids

DERIVED_GROUP: Final = (
    "quota.halfcard.dev"  # what only native quota reads: no node offers it, no scheduler may ask for it
)
DERIVED_CARDS: Final = "quota.halfcard.dev/cards"
DERIVED_SHARES: Final = "quota.halfcard.dev/shares"

DEVICE_CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"  # and a device class: DRA without a claim
GPU_DEVICE_CLASSES: Final = ("gpu.nvidia.com", "mig.nvidia.com", "vfio.gpu.nvidia.com")  # of NVIDIA's DRA driver
CLAIM_MAKERS: Final = frozenset(  # they make claims from templates and from pods, which are judged
    {"system:serviceaccount:kube-system:resource-claim-controller", "system:kube-scheduler"}
)

# --- labels that NVIDIA's feature discovery puts on nodes ------------------------------------------------------------

NVIDIA_LABEL_MEMORY: Final = "nvidia.com/gpu.memory"  # MiB of one card
NVIDIA_LABEL_PRODUCT: Final = "nvidia.com/gpu.product"
NVIDIA_LABEL_COUNT: Final = "nvidia.com/gpu.count"
NVIDIA_LABEL_REPLICAS: Final = "nvidia.com/gpu.replicas"

POOL_LABELS: Final = ("halfcard.dev/pool", "gaia.tencent.com/gpu-pool", "tkestack.io/gpu-pool")  # ours, gpu-manager's
MODEL_LABELS: Final = (NVIDIA_LABEL_PRODUCT, "gaia.tencent.com/gpu-model", "tkestack.io/gpu-model")

# --- annotations -----------------------------------------------------------------------------------------------------

CORE_LIMIT_SUFFIX: Final = "/vcuda-core-limit"  # burst ceiling of the pod's containers, written by people

OWN_DOMAIN: Final = "halfcard.dev"
OWN_PREFIX: Final = "halfcard.dev/"
FENCE: Final = "halfcard.dev/fence"  # who may bind a pod that has no node yet
RECONSIDER: Final = "halfcard.dev/reconsider"  # makes the scheduler ask again about a pod that has no node yet
PLACEMENT: Final = "halfcard.dev/placement"  # which cards each container was given
INVENTORY: Final = "halfcard.dev/inventory"  # on nodes: their cards, by our agent
ANNOUNCED: Final = "halfcard.dev/announced"  # on nodes: what our agent wrote there under names that others use too
CORDONED_CARDS: Final = "halfcard.dev/cordoned-cards"  # on nodes: cards that get nothing new, by index or uuid
LEADER_ADDRESS: Final = "halfcard.dev/address"  # on the Lease: where binds are forwarded to
CONTACT: Final = "halfcard.dev/scheduler-contact"  # on a Lease of that name: when schedulers called, and how
LEARNT_MIX: Final = "halfcard.dev/mix"  # on the Lease: which pods are expected
CORE_LIMIT_DEFAULTED: Final = "halfcard.dev/core-limit-defaulted"  # which core limits we wrote ourselves
NUDGED: Final = "halfcard.dev/nudged"  # on owners of pods: when a quota had room for them again
CALLERS_MADE: Final = "halfcard.dev/made"  # on the Secret of caller tokens: when the newest was made
CALLERS_SINCE: Final = "halfcard.dev/registered-since"  # there: since when only the newest is registered
KNOWN_SINCE: Final = "halfcard.dev/known-since"  # on a CA's Secret: since when everybody who verifies has had it
NEW_LEAF_ASKED: Final = "halfcard.dev/new-certificate-asked"  # on a certificate's Secret, a time: what is older goes
NEW_CA_ASKED: Final = "halfcard.dev/new-ca-asked"  # as above, for the CA that signed it
SETTINGS_HASH: Final = "halfcard.dev/settings"  # on our own pods: a hash of the settings that they were made with
QUOTA_TWINS: Final = "halfcard.dev/quota-twins"  # which requests.* keys of a quota we wrote ourselves

PREDICATE_SUFFIX: Final = "/predicate-"  # gpu-manager's record of node, time and cards
PREDICATE_CARDS_SUFFIX: Final = "/predicate-gpu-idx-"  # and the container's number
PREDICATE_NODE_SUFFIX: Final = "/predicate-node"
PREDICATE_TIME_SUFFIX: Final = "/predicate-time"
GPU_ASSIGNED_SUFFIX: Final = "/gpu-assigned"
ALIYUN_RECORD_PREFIX: Final = "ALIYUN_COM_GPU_MEM_"  # gpushare's record of card and amounts
ALIYUN_INDEX: Final = "ALIYUN_COM_GPU_MEM_IDX"
ALIYUN_CARD_TOTAL: Final = "ALIYUN_COM_GPU_MEM_DEV"
ALIYUN_POD_TOTAL: Final = "ALIYUN_COM_GPU_MEM_POD"
ALIYUN_ASSIGNED: Final = "ALIYUN_COM_GPU_MEM_ASSIGNED"
ALIYUN_ASSUME_TIME: Final = "ALIYUN_COM_GPU_MEM_ASSUME_TIME"
VOLCANO_INDEX: Final = "volcano.sh/gpu-index"
VOLCANO_TIME: Final = "volcano.sh/predicate-time"
HAMI_REGISTER: Final = "hami.io/node-nvidia-register"  # on nodes: the cards that HAMi's own scheduler gives away
OWNED_SUFFIXES: Final = (PREDICATE_SUFFIX, GPU_ASSIGNED_SUFFIX)
OWNED_PREFIXES: Final = (
    OWN_PREFIX,
    ALIYUN_RECORD_PREFIX,
    "hami.io/vgpu-",
    "hami.io/bind-",
    "volcano.sh/gpu-index",
)
ASK_POLICY: Final = "ask.halfcard.dev/policy"  # what a pod's owner may say about its cards
ASK_MODEL: Final = "ask.halfcard.dev/model"
ASK_UUID: Final = "ask.halfcard.dev/uuid"
HAMI_USE_MODEL: Final = "nvidia.com/use-gputype"
HAMI_AVOID_MODEL: Final = "nvidia.com/nouse-gputype"
HAMI_USE_UUID: Final = "nvidia.com/use-gpuuuid"
HAMI_AVOID_UUID: Final = "nvidia.com/nouse-gpuuuid"

CERT_MANAGER_INJECTS: Final = "cert-manager.io/inject-"  # on webhook configurations whose caBundle it writes
MIRROR_POD: Final = "kubernetes.io/config.mirror"  # kubelet's copy of a static pod, which cannot be changed

# --- environment of containers ---------------------------------------------------------------------------------------

VISIBLE_DEVICES: Final = "NVIDIA_VISIBLE_DEVICES"
SEES_NOTHING: Final = "void"  # tells NVIDIA's runtime to leave the container alone
SEES_NOTHING_VALUES: Final = frozenset({"void", "none"})

LIBRARY_PATH: Final = "LD_LIBRARY_PATH"

# --- what the node agent leaves on a node ---------------------------------------------------------------------------

CDI_KIND: Final = "halfcard.dev/slot"  # of devices for the runtime: halfcard.dev/slot=<name>
CDI_FOLDER: Final = "/var/run/cdi"
CDI_FOLDERS: Final = ("/etc/cdi", CDI_FOLDER)  # where NVIDIA's own description of its cards may be
DESCRIBE_CARDS: Final = "nvidia-ctk cdi generate --output /etc/cdi/nvidia.yaml"  # writes it
STATE_FOLDER: Final = "/var/lib/halfcard"
LIBRARIES_FOLDER: Final = "/usr/lib/halfcard"  # in the image
RUN_FOLDER: Final = "/run/halfcard"  # of the isolation libraries, in containers and, with all accounts, on the node
CUDA_LIBRARY: Final = "libcuda.so.1"
NVML_LIBRARY: Final = "libnvidia-ml.so.1"
ISOLATION_LIBRARIES: Final = (CUDA_LIBRARY, NVML_LIBRARY, "halfcard-preload.so")
KUBELET_PLUGINS: Final = "/var/lib/kubelet/device-plugins"
KUBELET_POD_RESOURCES: Final = "/var/lib/kubelet/pod-resources/kubelet.sock"
LIMITS_FILE: Final = "/etc/halfcard/limits.json"  # in containers
DRIVER_CAPABILITIES: Final = "NVIDIA_DRIVER_CAPABILITIES"
LIMITS_VARIABLE: Final = "HALFCARD_LIMITS"
LIMIT_CORES_VARIABLE: Final = "HALFCARD_CORES_PCT"  # of each card, in their order, as the two below
LIMIT_BURST_VARIABLE: Final = "HALFCARD_CORES_LIMIT_PCT"
LIMIT_MEMORY_VARIABLE: Final = "HALFCARD_MEMORY_MIB"
# and the card's place; for HAMi's and Volcano's library
CUDA_MEMORY_VARIABLE: Final = "CUDA_DEVICE_MEMORY_LIMIT_"
CUDA_CORES_VARIABLE: Final = "CUDA_DEVICE_SM_LIMIT"
VOLCANO_ALLOCATED_VARIABLE: Final = "VOLCANO_GPU_ALLOCATED"
VOLCANO_TOTAL_VARIABLE: Final = "VOLCANO_GPU_MEMORY_TOTAL"
ALIYUN_CONTAINER_VARIABLE: Final = "ALIYUN_COM_GPU_MEM_CONTAINER"
SLOT_RECORD: Final = "halfcard.dev/holder"  # within our descriptions of devices: whose they are
DEVICE_FILES: Final = "/dev/nvidia"  # and everything that begins so
CUDA_DEVICE_FILES: Final = ("/dev/nvidiactl", "/dev/nvidia-uvm")
"""Without one of these a container starts, and CUDA does not."""
SHARED_DEVICE_FILES: Final = (*CUDA_DEVICE_FILES, "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")
TIME_SLICING_LABEL: Final = "nvidia.com/device-plugin.config"  # which configuration a node takes
CARDS_CONDITION: Final = "HalfcardCards"  # of nodes: whether all cards are in order
ISOLATION_CONDITION: Final = "HalfcardIsolation"  # of nodes: whether containers of shares are held to them
MADE_UP_LABEL: Final = "halfcard.dev/made-up-gpus"  # on nodes whose cards are not there
ISOLATION_LABEL: Final = "halfcard.dev/isolation"  # on nodes where isolation differs from that of the installation
AGENT_LABEL: Final = "halfcard.dev/agent"  # on nodes that are to run our agent: "true"

# --- where Halfcard itself lives and listens -------------------------------------------------------------------------

NAMESPACE: Final = "halfcard-system"
ADMISSION_SERVICE: Final = "halfcard-admission"
EXTENDER_SERVICE: Final = "halfcard-extender"
EXTENDER_SERVICE_ACCOUNT: Final = "system:serviceaccount:halfcard-system:halfcard-extender"  # as a user
SCHEDULER: Final = "halfcard-scheduler"  # the chart's own kube-scheduler: its Deployment, account, Lease and profile
SCHEDULERS_CA: Final = "halfcard.dev/extender-ca"  # on its Deployment: the CA that its pods started with
SCHEDULER_CONTACT: Final = "halfcard-scheduler-contact"  # the Lease with what replicas have seen of schedulers
AGENT: Final = "halfcard-agent"  # whose Events those of nodes are
AGENT_SERVICE_ACCOUNT: Final = "system:serviceaccount:halfcard-system:halfcard-agent"
TOP: Final = "halfcard-top"  # the account and the ClusterRole of `halfcard top`
USAGE_ROLE: Final = "halfcard-usage"  # the ClusterRole that reads the usage of a node
QUOTA_SERVICE: Final = "halfcard-quota"  # its account and its Lease
QUOTA_SERVICE_ACCOUNT: Final = "system:serviceaccount:halfcard-system:halfcard-quota"
QUOTA_TURNS: Final = "halfcard-quota-turns"  # the ConfigMap with the turns of rollouts in queues
QUOTA_GATE: Final = "halfcard.dev/quota"  # a scheduling gate: the pod waits until its quotas have room
SETTINGS_MAP: Final = "halfcard-settings"  # the ConfigMap that all processes mount
SETTINGS_ENTRY: Final = "settings.yaml"  # its entry
CERTS_SERVICE: Final = "halfcard-certs"  # its account, and whose Events those of certificates are
ADMISSION_CA: Final = "halfcard-ca"  # Secrets
ADMISSION_TLS: Final = "halfcard-admission-tls"
ADMISSION_CALLERS: Final = "halfcard-admission-callers"
EXTENDER_CA: Final = "halfcard-extender-ca"
EXTENDER_TLS: Final = "halfcard-extender-tls"
SCHEDULER_TLS: Final = "halfcard-scheduler-tls"
OWN_USERS: Final = frozenset({EXTENDER_SERVICE_ACCOUNT, AGENT_SERVICE_ACCOUNT})  # they write the records
NODE_USERS: Final = "system:node:"  # what the name of every kubelet begins with
TEMPLATE_HASH: Final = "pod-template-hash"  # on the pods of a Deployment's ReplicaSets
REVISION_LABELS: Final = (TEMPLATE_HASH, "controller-revision-hash")  # the latter on those of other workloads
DAEMON_LABEL: Final = "pod-template-generation"  # on the pods of DaemonSets, and on no others
NAME_LABEL: Final = "app.kubernetes.io/name"  # on our own pods
NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"  # the API server puts it on every namespace
AKS_LEAVES_ALONE: Final = "admissions.enforcer/disabled"  # AKS changes the namespaces of other webhooks
KUBE_SYSTEM: Final = "kube-system"
DEFAULT_SCHEDULER: Final = "default-scheduler"

GPU_QUOTA: Final = "GpuQuota"
CLUSTER_GPU_QUOTA: Final = "ClusterGpuQuota"
QUOTA_API: Final = "/apis/halfcard.dev/v1alpha1"
GPU_QUOTAS: Final = "gpuquotas"
CLUSTER_GPU_QUOTAS: Final = "clustergpuquotas"
GPU_QUOTA_USAGE: Final = "GpuQuotaUsage"
GPU_QUOTA_USAGES: Final = "gpuquotausages"
GPU_QUOTA_MAP: Final = "gpuquota"  # the ConfigMap of TKE's quota admission, in kube-system
GPU_QUOTA_KEY: Final = "gpu_quota"

ADMISSION_PORT: Final = 8443
EXTENDER_PORT: Final = 3456
STATUS_PORT: Final = 8080
AGENT_PORT: Final = 5678  # gpu-manager's
AGENT_TLS_PORT: Final = 5679

MUTATE_PODS_PATH: Final = "/mutate/pods"
VALIDATE_PODS_PATH: Final = "/validate/pods"
VALIDATE_RECORDS_PATH: Final = "/validate/records"
MUTATE_WORKLOADS_PATH: Final = "/mutate/workloads"
VALIDATE_WORKLOADS_PATH: Final = "/validate/workloads"
MUTATE_QUOTAS_PATH: Final = "/mutate/resourcequotas"
VALIDATE_CLAIMS_PATH: Final = "/validate/resourceclaims"


FILTER_PATH: Final = "/scheduler/filter"
PRIORITIZE_PATH: Final = "/scheduler/prioritize"
BIND_PATH: Final = "/scheduler/bind"
PREEMPT_PATH: Final = "/scheduler/preempt"
INSPECT_PATH: Final = "/inspect"
GPU_ADMISSION_FILTER_PATH: Final = "/scheduler/predicates"
GPUSHARE_FILTER_PATH: Final = "/gpushare-scheduler/filter"
GPUSHARE_BIND_PATH: Final = "/gpushare-scheduler/bind"
GPUSHARE_INSPECT_PATH: Final = "/gpushare-scheduler/inspect"
VERSION_PATH: Final = "/version"


def webhook_name(path: str) -> str:
    """Returns the webhook's name for a path, as kubectl shows it: mutate-pods.halfcard.dev."""
    return f"{path.strip('/').replace('/', '-')}.{OWN_DOMAIN}"


HEALTH_PATH: Final = "/healthz"
READY_PATH: Final = "/readyz"
METRICS_PATH: Final = "/metrics"
GPU_MANAGER_METRICS_PATH: Final = "/metric"
USAGE_PATH: Final = "/usage"  # gpu-manager's too
HELD_BY: Final = "halfcard.dev/held-by"  # on a pod: what holds each of its containers to its share
MISUSE: Final = "halfcard.dev/card-misuse"  # on a pod: when its node's agent saw it use what was not granted, and what
TOKEN_HEADER: Final = "Halfcard-Token"  # noqa: S105 - a header's name; the API server's proxy removes the header Authorization
