"""Generates unusual objects, and usual ones among them, for laws that hold for all."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Final

from hypothesis import strategies as st

from admission.policy import AdmissionPolicy, PlacementDefaults
from halfcard import names
from halfcard.dialects import ALL
from halfcard.pod.holders import BUILT_IN, WELL_KNOWN
from halfcard.pod.spec import Toleration
from tests.builders import Json

from .judging import CORE, CORE_LIMIT, MARK, MEMORY

POLICIES: Final = (
    AdmissionPolicy(),
    AdmissionPolicy(slotted=frozenset({names.VOLCANO_GPU_MEMORY, names.ALIYUN_GPU_MEM})),
    AdmissionPolicy(default_core_limit=False),
    AdmissionPolicy(
        placement=PlacementDefaults(
            "gpu-scheduler", "nvidia", (Toleration("gpu", "Exists"), Toleration("b", "Equal", "c"))
        ),
        schedulers=frozenset({"gpu-scheduler"}),
    ),
)

# --- amounts ------------------------------------------------------------------------------------------------------

GOOD_CORES: Final = ["30", "0.3", "300m", 30, 0.3, "50", "0.5", "100", "200", "3e1", "0.03k", "5", "+7"]
GOOD_MEMORY: Final = ["20", 20, "5Gi", "5000Mi", "1k", "5e9", "256Mi", "1048576", "128"]
STRANGE: Final = [
    "0",
    0,
    "1.5",
    "0.305",
    "-1",
    "",
    "x",
    "1Ki",
    "0.001",
    "1e3",
    "9" * 30,
    " 3",
    "٣",
    "1e-300",
    "NaN",
    "3Gi",
]

cores = st.sampled_from(GOOD_CORES)
memory = st.sampled_from(GOOD_MEMORY)
strange = st.one_of(
    st.sampled_from(STRANGE),
    st.text(max_size=5),
    st.integers(-5, 2**63),
    st.floats(allow_nan=False, allow_infinity=False),
)
counts = st.sampled_from(["1", "2", 3, "100", "2048", "1k"])
gpu_resources = st.sampled_from(sorted(frozenset[str]().union(*(dialect.resources for dialect in ALL))))
resources = st.one_of(gpu_resources, st.sampled_from(["cpu", "memory", "example.com/fpga", names.SLOT]))


@st.composite
def honest_amounts(draw: st.DrawFn) -> Json:
    """Generates the amounts of one dialect."""
    prefix = draw(st.sampled_from([names.TENCENT, names.TENCENT, names.TUYA]))
    core, units = prefix + names.VCUDA_CORE_SUFFIX, prefix + names.VCUDA_MEMORY_SUFFIX
    vcuda = st.fixed_dictionaries({core: cores, units: memory})
    hami = st.dictionaries(st.sampled_from(sorted((names.HAMI_GPUMEM, names.HAMI_GPUCORES))), counts, min_size=1)
    single = st.dictionaries(gpu_resources, counts, min_size=1, max_size=1)
    other = st.dictionaries(st.sampled_from(["cpu", "memory", names.SLOT]), st.sampled_from(["1.5", "1"]))
    return {**draw(other), **draw(st.one_of(vcuda, vcuda, hami, single))}


wild_amounts = st.dictionaries(resources, st.one_of(strange, cores, memory, counts), max_size=4)
all_amounts = st.one_of(honest_amounts(), honest_amounts(), honest_amounts(), wild_amounts)


@st.composite
def sides(draw: st.DrawFn) -> Any:
    """Generates limits and requests: one side, or both in equal, respelled or different amounts."""
    limits = draw(all_amounts)
    requests = draw(st.sampled_from([None, "same", "same", "respelled", "other"]))
    if requests is None:
        return {draw(st.sampled_from(["limits", "requests"])): limits, **draw(st.sampled_from([{}, {"claims": []}]))}
    if requests == "other":
        return {"limits": limits, "requests": draw(st.one_of(st.none(), st.just({}), all_amounts))}
    twin = {key: _respelled(value) if requests == "respelled" else value for key, value in limits.items()}
    return {"limits": limits, "requests": twin}


def _respelled(amount: Any) -> Any:
    return {"30": "0.3", "0.3": "30000m", "20": "5Gi", "5Gi": 20, "100": "1e2"}.get(amount, amount)


# --- pods ---------------------------------------------------------------------------------------------------------

env_names = st.sampled_from(
    ["A", "B", "PATH", names.LIBRARY_PATH, names.VISIBLE_DEVICES, "LD_PRELOAD", "HALFCARD_X", "NVIDIA_VISIBLE_DEVICE"]
)
variables = st.fixed_dictionaries(
    {"name": env_names},
    optional={"value": st.sampled_from(["void", "all", "x", ""]), "valueFrom": st.just({"fieldRef": {}})},
)
extras = st.dictionaries(
    st.sampled_from(["image", "futureField", "tty"]), st.sampled_from([None, "x", {"a": [1]}, 0.5])
)


def sometimes(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.one_of(st.just([]), st.just([]), st.lists(strategy, min_size=1, max_size=2))


@st.composite
def containers(draw: st.DrawFn, wild: bool) -> Json:  # noqa: FBT001
    result: Json = {"name": "c", **draw(extras)}
    if draw(st.integers(0, 3)):
        result["resources"] = draw(sides())
    if env := draw(sometimes(variables if wild else variables.filter(_is_harmless))):
        result["env"] = env
    if wild and draw(st.integers(0, 7)) == 0:
        result["securityContext"] = {"privileged": True}
        result["envFrom"] = [{"prefix": "NVIDIA_"}]
        result["volumeMounts"] = [{"mountPath": "/var/run/nvidia-container-devices"}]
    if draw(st.integers(0, 5)) == 0:
        result["restartPolicy"] = "Always"
    return result


def _is_harmless(variable: Json) -> bool:
    return variable["name"] in {"A", "B", "PATH"} or (variable.get("value"), len(variable)) == ("void", 2)


annotation_keys = st.sampled_from(
    [CORE_LIMIT, MARK, "a/b~c", "note", "tencent.com/predicate-node", names.TUYA + names.CORE_LIMIT_SUFFIX]
)
annotation_texts = st.sampled_from(["50", " 50 ", "30", "200", "x", "", f"{CORE_LIMIT}=30", f"{CORE_LIMIT}= 50 "])


@st.composite
def pods(draw: st.DrawFn) -> Json:
    wild = draw(st.integers(0, 3)) == 0
    spec: Json = {"containers": draw(st.lists(containers(wild), max_size=3)), **draw(extras)}
    if init := draw(sometimes(containers(wild))):
        spec["initContainers"] = init
    if draw(st.booleans()):
        spec["tolerations"] = draw(st.sampled_from([None, [], [{"key": "gpu", "operator": "Exists"}], [{"key": "z"}]]))
        spec["schedulerName"] = draw(st.sampled_from([None, "", "default-scheduler", "other"]))
    if wild:
        spec |= draw(
            st.sampled_from([{}, {"nodeName": "n"}, {"hostPID": True}, {"volumes": [{"hostPath": {"path": "/"}}]}])
        )
    pod: Json = {"apiVersion": "v1", "kind": "Pod", **draw(extras), "spec": spec}
    if draw(st.integers(0, 9)):
        pod["metadata"] = {"name": "p", **draw(extras)}
        keys = annotation_keys if wild else st.sampled_from([CORE_LIMIT, "a/b~c", "note"])
        pod["metadata"] |= draw(
            st.one_of(
                st.just({}),
                st.just({"annotations": None}),
                st.dictionaries(keys, annotation_texts, max_size=3).map(lambda each: {"annotations": each}),
            )
        )
    return copy.deepcopy(pod)


@st.composite
def workloads(draw: st.DrawFn) -> Json:
    return holding(draw(st.sampled_from(sorted(BUILT_IN))), draw(pods()))


def holding(kind: str, template: Json) -> Json:
    """Returns an object of a kind of `halfcard/pod/holders.py` with a template at the first of its paths."""
    (path, *_), obj = {**BUILT_IN, **WELL_KNOWN}[kind], template
    for part in reversed(path.split(".")):
        obj = [obj] if part == "*" else {part: obj}  # type: ignore[assignment] # a list only on the way
    group, _, name = kind.rpartition("/")
    return {"apiVersion": f"{group}/v1" if group else "v1", "kind": name, "metadata": {"name": "w"}, **obj}


@st.composite
def quotas(draw: st.DrawFn) -> Json:
    keys = st.builds(
        str.__add__,
        st.sampled_from(["", "limits.", "requests."]),
        st.sampled_from([CORE, MEMORY, names.TUYA_SGPU, "cpu"]),
    )
    texts = st.one_of(
        st.sampled_from(["100", 100, "80", "1.5", "5Gi", "1k", "0"]), st.sampled_from(["0.305", "x", "1.5"])
    )
    hard = draw(st.dictionaries(keys, texts, max_size=6))
    quota: Json = {"kind": "ResourceQuota", "spec": {"hard": hard}}
    marks = st.one_of(
        st.none(), st.sampled_from([f"requests.{CORE}=100", f"requests.{CORE}=80,requests.{MEMORY}=20", "x", "=,"])
    )
    if (mark := draw(marks)) is not None:
        quota["metadata"] = {"annotations": {names.QUOTA_TWINS: mark, "note": "x"}}
    return quota


json_values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=8)
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=8,
)


# --- anything anywhere --------------------------------------------------------------------------------------------


def _places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for part, member in members:
        yield (*path, part)
        yield from _places(member, (*path, part))


@st.composite
def odd_objects(draw: st.DrawFn, *more: st.SearchStrategy[Json]) -> Json:
    """Generates pods, quotas, `more`, and objects of every kind with pod templates, with any JSON in one place."""
    held = st.builds(holding, st.sampled_from(sorted({**BUILT_IN, **WELL_KNOWN})), pods())
    obj = draw(st.one_of(pods().map(lambda pod: {"kind": "Pod", **pod}), quotas(), held, *more))
    whole: Json = copy.deepcopy(obj)
    *way, last = draw(st.sampled_from(list(_places(whole))))
    parent: Any = whole
    for part in way:
        parent = parent[part]
    parent[last] = draw(json_values)
    return whole
