from __future__ import annotations

from typing import Any, Final

import pytest

from admission.policy import AdmissionPolicy, PlacementDefaults
from admission.policy_settings import policy_of
from halfcard import names
from halfcard.dialects import ALL
from halfcard.isolation.mode import IsolationMode
from halfcard.pod.spec import Toleration
from halfcard.problems import Severity
from halfcard.quota.derived_resources import DerivedSettings
from settings.installation import Settings, SettingsError, read_settings
from tests.admission.judging import cards, codes, mutate, mutated, validate
from tests.builders import container, gpu, pod_of


def policy(**raw: Any) -> AdmissionPolicy:
    return policy_of(read_settings(raw))


def test_no_settings_are_the_defaults() -> None:
    made, plain = policy_of(Settings()), AdmissionPolicy()
    for field in ("severities", "trusted_users", "exempt_namespaces", "schedulers", "placement", "templates"):
        assert getattr(made, field) == getattr(plain, field)
    assert made.default_core_limit is True
    assert made.dialects.table == ALL


def test_every_key_reaches_the_policy() -> None:
    made = policy(
        severities={"HC026": "warn"},
        trusted_users=["agent"],
        exempt_namespaces=["ci"],
        system_workloads=["longhorn-system", "monitoring/node-exporter"],
        host_paths=["/var/lib/models"],
        schedulers=["a", "b"],
        default_core_limit=False,
        templates="warn",
        set_scheduler_name="c",
        set_runtime_class_name="nvidia",
        add_tolerations=[{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
    )
    assert made.severities == {"HC026": Severity.WARN}
    assert made.trusted_users == {"agent", *names.OWN_USERS}
    assert made.exempt_namespaces == {"kube-system", "halfcard-system", "ci"}
    assert made.system_workloads == {"longhorn-system", "monitoring/node-exporter"}
    assert made.host_paths == ("/var/lib/models",)
    assert made.schedulers == {"a", "b", "c"}
    assert made.default_core_limit is False
    assert made.templates is Severity.WARN
    assert made.placement == PlacementDefaults("c", "nvidia", (Toleration("gpu", "Exists", None, "NoSchedule"),))


@pytest.mark.parametrize("folder", ["/", "", "data", "/a/../b", "/a//b", "/a/", "/./etc", "/.."])
def test_an_open_folder_means_one_folder(folder: str) -> None:
    with pytest.raises(SettingsError, match="host_paths"):
        read_settings({"host_paths": [folder]})


@pytest.mark.parametrize("who", ["", "*", "a/b/c", "Team", "a/", "/b"])
def test_a_system_workload_is_a_namespace_or_a_service_account(who: str) -> None:
    with pytest.raises(SettingsError, match="system_workloads"):
        read_settings({"system_workloads": [who]})


def test_a_dialect_can_be_switched_off() -> None:
    obj = pod_of(container({names.TUYA_SGPU: "1.5"}))
    assert codes(mutate(obj)) == ["HC001"]
    assert mutate(obj, policy=policy(dialects=["tencent"])).allowed


def test_an_own_domain_becomes_a_dialect() -> None:
    made = policy(vcuda_prefixes=[{"prefix": "gpu.example.com", "memory_alone": True}])
    core, memory = "gpu.example.com/vcuda-core", "gpu.example.com/vcuda-memory"
    after = mutated(pod_of(container({core: "0.3", memory: "5Gi"})), policy=made)
    assert after["spec"]["containers"][0]["resources"]["requests"] == {core: "30", memory: "20"}
    assert after["metadata"]["annotations"]["gpu.example.com/vcuda-core-limit"] == "30"
    assert validate(pod_of(container({memory: "20"}, {memory: "20"})), policy=made).allowed


def test_gpushare_counts_in_the_unit_of_its_node_plugin() -> None:
    obj = pod_of(container({names.ALIYUN_GPU_MEM: "4096"}))
    assert codes(mutate(obj, cluster=cards(16384))) == ["HC008"]
    assert mutate(obj, cluster=cards(16384), policy=policy(aliyun_memory_unit="MiB")).allowed


def test_a_known_prefix_can_be_given_other_rules() -> None:
    made = policy(dialects=["nvidia"], vcuda_prefixes=[{"prefix": names.TENCENT, "memory_alone": True}])
    assert validate(pod_of(gpu(None, "20")), policy=made).allowed


MISTAKES: Final[tuple[tuple[dict[str, Any], str], ...]] = (
    ({"unknown": 1}, "unknown"),
    ({"dialects": ["klingon"]}, "dialects"),
    ({"severities": {"HC999": "warn"}}, "severities"),
    ({"severities": {"HC001": "loud"}}, "severities.HC001"),
    ({"templates": "maybe"}, "templates"),
    ({"aliyun_memory_unit": "KiB"}, "aliyun_memory_unit"),
    ({"vcuda_prefixes": [{"prefix": "not a domain"}]}, "vcuda_prefixes.0.prefix"),
    ({"vcuda_prefixes": [{"prefix": names.TENCENT}]}, "vcuda_prefixes"),
    ({"vcuda_prefixes": [{"prefix": "a.example"}, {"prefix": "a.example"}]}, "vcuda_prefixes"),
    ({"add_tolerations": [{"key": "gpu", "effect": "Sometimes"}]}, "add_tolerations.0.effect"),
    ({"trusted_users": "root"}, "trusted_users"),
    ({"default_core_limit": []}, "default_core_limit"),
    ({"node_resources": [names.VCUDA_CORE, names.VCUDA_CORE]}, "node_resources"),
    ({"time_slicing": {"config": "gpu-operator"}}, "time_slicing.config"),
    ({"time_slicing": {"config": "a/b/c"}}, "time_slicing.config"),
    ({"time_slicing": {}}, "time_slicing.config"),
    ({"time_slicing": {"config": "a/b", "default": "../x"}}, "time_slicing.default"),
    ({"derived_resources": {}}, "derived_resources.schedulers"),
    ({"derived_resources": {"schedulers": []}}, "derived_resources"),
    ({"derived_resources": {"schedulers": ["default-scheduler"], "models": ["a b"]}}, "derived_resources.models.0"),
    ({"hami_device_split": 0}, "hami_device_split"),
    ({"hami_device_split": 2000}, "hami_device_split"),
    ({"packing": "tight"}, "packing"),
    ({"model_strengths": {"A100": 21}}, "model_strengths.A100"),
    ({"model_strengths": {"A100": 1.5}}, "model_strengths.A100"),
    ({"model_strengths": {"A100,T4": 1}}, "model_strengths.A100,T4.[key]"),
    ({"pod_templates": {"trainer": []}}, "pod_templates"),
    ({"pod_templates": {"example.com/Trainer": ["spec..x"]}}, "pod_templates.example.com/Trainer.0"),
    ({"node_resources": ["nvidia.com/gpus"]}, "node_resources"),
    ({"dialects": ["tencent"], "node_resources": [names.TUYA_SGPU]}, "node_resources"),
    ({"exempt_namespaces": ["Team A"]}, "exempt_namespaces.0"),
    ({"set_runtime_class_name": "NVIDIA runtime"}, "set_runtime_class_name"),
    ({"add_tolerations": [{"key": "two words"}]}, "add_tolerations.0.key"),
    ({"add_tolerations": [{"key": "gpu", "value": "yes"}]}, "add_tolerations.0.value"),
)
"""Settings with one mistake, and its place. The chart refuses them, too."""


def test_models_are_compared_in_any_case() -> None:
    assert read_settings({"model_strengths": {"A100": 12, "RTX 2080": 3}}).strengths() == (
        ("a100", 12),
        ("rtx 2080", 3),
    )


@pytest.mark.parametrize(("raw", "place"), MISTAKES)
def test_a_mistake_is_reported_with_its_place(raw: dict[str, Any], place: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read_settings(raw)
    assert str(refused.value).startswith(f"{place}: ")


@pytest.mark.parametrize(
    "others", [{"schedulers": ["default-scheduler", "gpu"]}, {"set_scheduler_name": "gpu"}, {"schedulers": ["gpu"]}]
)
def test_derived_resources_need_every_scheduler_to_ignore_them(others: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="gpu would find no node for such pods; have its profile ignore"):
        read_settings({**others, "derived_resources": {"schedulers": ["default-scheduler"]}})
    all_of_them = {"schedulers": ["default-scheduler", "gpu"], "models": ["A100"]}
    assert read_settings({**others, "derived_resources": all_of_them}).derived_settings() == DerivedSettings(("A100",))


@pytest.mark.parametrize(
    ("resource", "beside"),
    [
        ("nvidia.com/gpus", {}),
        (names.HAMI_GPUMEM, {}),
        (names.SLOT, {}),
        (names.TUYA_SGPU, {"dialects": ["tencent"]}),
        ("gpu.example.com/vcuda-core", {}),
    ],
)
def test_a_resource_that_no_node_can_advertise_is_refused_with_those_that_it_can(
    resource: str, beside: dict[str, Any]
) -> None:
    with pytest.raises(SettingsError) as refused:
        read_settings({**beside, "node_resources": [resource]})
    assert str(refused.value).startswith(f"node_resources: unknown resource {resource}; use ")
    assert names.VCUDA_CORE in str(refused.value)


def test_every_resource_in_the_message_can_be_advertised() -> None:
    with pytest.raises(SettingsError) as refused:
        read_settings({"node_resources": ["x"]})
    for resource in str(refused.value).partition("; use ")[2].split(", "):
        assert read_settings({"node_resources": [resource]}).advertised_resources() == (resource,)


def test_cards_are_advertised_under_an_own_domain() -> None:
    raw = {"vcuda_prefixes": [{"prefix": "gpu.example.com"}], "node_resources": ["gpu.example.com/vcuda-core"]}
    assert read_settings(raw).advertised_resources() == ("gpu.example.com/vcuda-core",)


def test_by_default_a_node_advertises_the_resources_of_enabled_dialects() -> None:
    assert read_settings({}).advertised_resources() == (
        names.VCUDA_CORE,
        names.VCUDA_MEMORY,
        names.TUYA_SGPU,
        names.NVIDIA_GPU,
    )
    assert read_settings({"dialects": ["nvidia"]}).advertised_resources() == (names.NVIDIA_GPU,)


def test_resources_in_mib_need_slots() -> None:
    wanted = [names.VOLCANO_GPU_MEMORY, names.VOLCANO_GPU_NUMBER, names.ALIYUN_GPU_MEM]
    assert read_settings({"node_resources": wanted}).slotted_resources() == {names.VOLCANO_GPU_MEMORY}
    in_mib = read_settings({"node_resources": wanted, "aliyun_memory_unit": "MiB"})
    assert in_mib.slotted_resources() == {names.VOLCANO_GPU_MEMORY, names.ALIYUN_GPU_MEM}
    assert read_settings({}).slotted_resources() == set()


def test_a_mistake_in_dialects_is_not_reported_again_for_node_resources() -> None:
    with pytest.raises(SettingsError) as refused:
        read_settings({"dialects": ["klingon"], "node_resources": [names.TUYA_SGPU]})
    assert len(str(refused.value).splitlines()) == 1


def test_time_slices_are_described_by_a_config_map() -> None:
    slicing = read_settings({"time_slicing": {"config": "gpu-operator/time-slicing-config"}}).time_slicing
    assert slicing is not None
    assert (slicing.place, slicing.default) == (("gpu-operator", "time-slicing-config"), "any")


def test_all_mistakes_are_reported_at_once() -> None:
    with pytest.raises(SettingsError) as refused:
        read_settings({"a": 1, "templates": "x", "dialects": ["y"]})
    assert len(str(refused.value).splitlines()) == 3


@pytest.mark.parametrize("raw", [[], "text", 5])
def test_settings_that_are_no_mapping_are_refused(raw: Any) -> None:
    with pytest.raises(SettingsError):
        read_settings(raw)


@pytest.mark.parametrize(
    ("written", "mode"),
    [
        ("off", IsolationMode.OFF),
        (False, IsolationMode.OFF),
        ("warn", IsolationMode.WARN),
        ("enforce", IsolationMode.ENFORCE),
    ],
    ids=["off", "off without quotes, which YAML reads as false", "warn", "enforce"],
)
def test_isolation_is_one_of_three_modes(written: object, mode: IsolationMode) -> None:
    assert read_settings({"isolation": written}).isolation is mode


@pytest.mark.parametrize("written", ["on", True, None, ""])
def test_another_isolation_is_a_mistake(written: object) -> None:
    with pytest.raises(SettingsError, match="isolation"):
        read_settings({"isolation": written})
