"""The chart with the real helm: what it renders, what it refuses, and that a real API server accepts it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pytest
import yaml

from admission.policy_settings import policy_of
from admission.registration.static_guard import guard
from cli.scheduler_config import configuration_for
from deploy.chart.made import CHART, MANIFESTS
from deploy.chart.rendered import manifests
from devcluster.build.binaries import program_path
from devcluster.cluster import Cluster
from devcluster.control_plane.client import CommandResult, run
from halfcard import names
from halfcard.dialects import Dialects
from halfcard.webhook_configurations import configurations
from settings.installation import read_settings
from tests.deviceplugin.gpus.test_fake_gpus import REFUSED, SPECS
from tests.settings.test_installation import MISTAKES

_PAGE: Final = Path(__file__).parents[2] / "docs" / "install.md"


def helm(*arguments: str, values: Mapping[str, Any] | None = None, folder: Path = CHART) -> CommandResult:
    more = ("--values=-",) if values is not None else ()
    return run(str(program_path("helm")), *arguments, *more, home=folder, stdin=json.dumps(values or {}))


def template(values: Mapping[str, Any] | None = None, namespace: str = names.NAMESPACE) -> CommandResult:
    return helm("template", "halfcard", str(CHART), f"--namespace={namespace}", values=values or {})


def objects(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    done = template(values)
    assert done.code == 0, done.stderr
    return [item for item in yaml.safe_load_all(done.stdout) if item]


def of_kind(values: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    return [item for item in objects(values) if item["kind"] == kind]


def test_helm_lint_finds_nothing() -> None:
    done = helm("lint", "--strict", str(CHART), f"--namespace={names.NAMESPACE}")
    assert done.code == 0, done.stdout
    assert re.findall(r"\[(?:WARNING|ERROR)\].*", done.stdout) == []


def test_the_manifests_are_what_helm_renders() -> None:
    assert manifests(str(program_path("helm")), CHART) == MANIFESTS.read_text(), (
        "run `python -m deploy.chart --helm FILE`"
    )


def test_another_namespace_is_refused_with_the_right_options() -> None:
    done = template(namespace="gpu")
    assert done.code == 1
    assert "not in gpu: add --namespace halfcard-system --create-namespace" in done.stderr


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"admision": {"replicas": 3}}, "admision"),
        ({"admission": {"replicas": 0}}, "/admission/replicas"),
        ({"webhooks": {"failurePolicy": "Maybe"}}, "/webhooks/failurePolicy"),
        ({"settings": {"dialect": ["tencent"]}}, "dialect"),
        ({"settings": {"templates": "never"}}, "/settings/templates"),
        ({"settings": {"derived_resources": {"schedulers": ["gpu"]}}}, "default-scheduler would find no node"),
        ({"scheduler": {"alsoNamed": ["default-scheduler"]}}, "/scheduler/alsoNamed/0"),
        (
            {"scheduler": {"enabled": True}, "settings": {"set_scheduler_name": "default-scheduler"}},
            "default-scheduler is the cluster's own",
        ),
        ({"image": {"digest": "latest"}}, "/image/digest"),
        ({"extender": {"clusterIP": "banana"}}, "/extender/clusterIP"),
        ({"admission": {"arguments": ["--port=1"]}}, "/admission/arguments/0"),
        ({"quota": {"arguments": ["--log=xml"]}}, "/quota/arguments/0"),
        ({"certs": {"labels": {"app.kubernetes.io/name": "mine"}}}, "/certs/labels"),
        ({"agent": {"annotations": {"halfcard.dev/settings": "mine"}}}, "/agent/annotations"),
        ({"agent": {"tolerations": [{"key": "a", "operator": "Sometimes"}]}}, "/agent/tolerations/0/operator"),
        ({"admission": {"resources": {"limits": {"memory": "much"}}}}, "/admission/resources/limits/memory"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_mistake_in_the_values_is_named(values: Mapping[str, Any], message: str) -> None:
    done = template(values)
    assert done.code == 1
    assert message in done.stderr


@pytest.mark.parametrize(("raw", "place"), MISTAKES)
def test_helm_refuses_the_settings_that_no_process_can_read(raw: Mapping[str, Any], place: str) -> None:
    done = template({"settings": raw})
    assert done.code == 1
    assert place.partition(".")[0] in done.stderr


@pytest.mark.parametrize("spec", [spec for spec, _ in REFUSED.values()], ids=REFUSED)
def test_helm_refuses_the_simulated_cards_that_the_agent_refuses(spec: str) -> None:
    done = template({"agent": {"arguments": [f"--fake-gpus={spec}"]}})
    assert done.code == 1
    assert "agent" in done.stderr and "arguments" in done.stderr


def test_helm_accepts_the_simulated_cards_and_arguments_that_processes_accept() -> None:
    everywhere = {"arguments": ["--log=console"]}
    for spec in SPECS:
        agent = {"arguments": [f"--fake-gpus={spec}", "--without-cdi", "--log=console"]}
        made = objects({"agent": agent, "quota": everywhere, "certs": everywhere, "extender": everywhere})
        given = [part for item in made for part in _entries(item) if part[0] == "args"]
        assert [args[-1] for _, args in given].count("--log=console") == 4


def test_every_component_passes_its_values_on_to_its_pods() -> None:
    values = {
        "nodeSelector": {"pool": "infra"},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}},
        "tolerations": [{"key": "infra", "operator": "Exists"}],
        "annotations": {"example.com/team": "gpu"},
        "labels": {"team": "gpu"},
        "priorityClassName": "ours",
    }
    processes = dict.fromkeys(("admission", "extender", "quota", "certs", "agent"), values)
    made = objects({**processes, "scheduler": {"enabled": True, **values}})
    pods = [item["spec"]["template"] for item in made if item["kind"] in _POD_KINDS]
    assert len(pods) == 6
    for pod in pods:
        spec, metadata = pod["spec"], pod["metadata"]
        assert {key: spec[key] for key in ("affinity", "tolerations", "priorityClassName")} == {
            key: values[key] for key in ("affinity", "tolerations", "priorityClassName")
        }
        assert {"pool": "infra"}.items() <= spec["nodeSelector"].items()
        assert {"example.com/team": "gpu"}.items() <= metadata["annotations"].items()
        assert {"team": "gpu"}.items() <= metadata["labels"].items()
    (agent,) = (pod["spec"]["nodeSelector"] for pod in pods if pod["spec"]["serviceAccountName"] == names.AGENT)
    assert agent == {"pool": "infra", names.AGENT_LABEL: "true"}


def test_every_object_and_the_notes_name_the_namespace() -> None:
    named = {item["metadata"].get("namespace") for item in objects({}) if item["kind"] in _IN_A_NAMESPACE}
    assert named == {names.NAMESPACE}
    done = helm("install", "--dry-run=client", "halfcard", str(CHART), f"--namespace={names.NAMESPACE}")
    assert f"is installed in the namespace {names.NAMESPACE}." in done.stdout


_IN_A_NAMESPACE: Final = {
    *("Deployment", "DaemonSet", "Service", "ServiceAccount", "ConfigMap", "Secret"),
    *("PodDisruptionBudget", "NetworkPolicy"),
}

each_settings = pytest.mark.parametrize(
    "settings",
    [
        {},
        {"exempt_namespaces": ["gpu-operator", "a"]},
        {"dialects": ["tencent", "hami"]},
        {"vcuda_prefixes": [{"prefix": "gpu.example.com"}, {"prefix": "aaa.example.com", "memory_alone": True}]},
        {"dialects": ["nvidia"], "vcuda_prefixes": [{"prefix": "x.y"}], "exempt_namespaces": ["kube-system"]},
        {"severities": {"HC002": "warn", "HC006": "off", "HC043": "deny"}},
    ],
    ids=lambda settings: ",".join(settings) or "defaults",
)


def test_the_chart_has_both_configurations_without_webhooks() -> None:
    """So a failed installation refuses no pod, and helm deletes the webhooks before their pods."""
    found = [item for item in objects({}) if item["kind"].endswith("WebhookConfiguration")]
    assert {(item["kind"], item["metadata"]["name"]) for item in found} == {
        (item["kind"], item["metadata"]["name"]) for item in configurations(Dialects(), exempt=[])
    }
    assert [item for item in found if "webhooks" in item] == []


def test_values_reach_the_process_that_registers_the_webhooks() -> None:
    values = {"webhooks": {"failurePolicy": "Ignore"}, "certificates": {"from": "cert-manager"}}
    (certs,) = (item for item in of_kind(values, "Deployment") if item["metadata"]["name"] == names.CERTS_SERVICE)
    (container,) = certs["spec"]["template"]["spec"]["containers"]
    assert {"--failure-policy=Ignore", "--issuer=cert-manager"} <= {*container["args"]}


def test_only_named_peers_may_call_the_webhook_where_the_address_of_the_api_server_is_known() -> None:
    peers = [{"ipBlock": {"cidr": "10.0.0.7/32"}}]
    found = {
        item["metadata"]["name"]: item["spec"]
        for item in of_kind({"networkPolicy": {"callsFrom": peers}}, "NetworkPolicy")
    }
    assert found["halfcard-api-server"]["ingress"] == [{"from": peers, "ports": [{"port": "https"}]}]
    assert names.ADMISSION_SERVICE not in str(found["halfcard-calls"])
    everywhere = {item["metadata"]["name"]: item["spec"] for item in of_kind({}, "NetworkPolicy")}
    assert names.ADMISSION_SERVICE in str(everywhere["halfcard-calls"]) and "halfcard-api-server" not in everywhere


def test_the_webhook_requires_a_client_certificate_where_the_api_server_has_one() -> None:
    def webhook(values: Mapping[str, Any]) -> Any:
        found = of_kind(values, "Deployment")
        return next(each for each in found if each["metadata"]["name"] == names.ADMISSION_SERVICE)["spec"]["template"][
            "spec"
        ]

    pod = webhook({"webhooks": {"clientCA": "api-server"}})
    assert "--client-ca=/etc/halfcard/client-ca/ca.crt" in pod["containers"][0]["args"]
    assert "api-server" in str(pod["volumes"])
    assert "client-ca" not in str(webhook({}))


@pytest.mark.parametrize("issuer", ["halfcard", "cert-manager"])
def test_the_webhooks_pods_wait_for_the_caller_tokens_with_every_issuer(issuer: str) -> None:
    values = {"certificates": {"from": issuer}}
    assert names.ADMISSION_CALLERS in {item["metadata"]["name"] for item in of_kind(values, "Secret")}
    roles = [rule for item in of_kind(values, "Role") for rule in item["rules"]]
    assert [rule["verbs"] for rule in roles if rule.get("resourceNames") == [names.ADMISSION_CALLERS]] == [
        ["get", "update"]
    ]


@each_settings
def test_the_chart_renders_the_guard_of_the_code_only_if_enabled(settings: Mapping[str, Any]) -> None:
    wanted = guard(policy_of(read_settings(settings)))
    assert [item for item in wanted if item not in objects({"settings": settings, "webhooks": {"guard": True}})] == []
    assert [item for item in objects({"settings": settings}) if "guard" in item["metadata"]["name"]] == []


def test_settings_reach_the_processes_and_changed_settings_restart_pods() -> None:
    settings = {"packing": "spread", "node_resources": [names.VCUDA_CORE, names.VCUDA_MEMORY]}
    (written,) = of_kind({"settings": settings}, "ConfigMap")
    assert read_settings(yaml.safe_load(written["data"]["settings.yaml"])) == read_settings(settings)
    assert _settings_hashes({"settings": settings}).isdisjoint(_settings_hashes({}))
    assert len(_settings_hashes({})) == 1


def _settings_hashes(values: Mapping[str, Any]) -> set[str]:
    workloads = [item for item in objects(values) if item["kind"] in ("Deployment", "DaemonSet")]
    return {item["spec"]["template"]["metadata"]["annotations"]["halfcard.dev/settings"] for item in workloads}


def test_a_setting_that_needs_another_right_grants_it() -> None:
    assert "halfcard-extender-evicts" not in _roles({})
    assert "halfcard-extender-evicts" in _roles({"settings": {"evict_for_cards": True}})
    assert "halfcard-extender-evicts-misuse" not in _roles({})
    assert "halfcard-extender-evicts-misuse" in _roles({"settings": {"evict_for_misuse": True}})
    assert "halfcard-quota-repairs" not in _roles({})
    assert "halfcard-quota-repairs" in _roles({"settings": {"repair_quotas_at_start": True}})
    slices = [
        (role["metadata"]["namespace"], role["rules"][0]["resourceNames"])
        for role in of_kind({"settings": {"time_slicing": {"config": "gpu-operator/slices"}}}, "Role")
        if role["metadata"]["name"] == "halfcard-agent-slices"
    ]
    assert slices == [("gpu-operator", ["slices"])]


def _roles(values: Mapping[str, Any]) -> set[str]:
    return {item["metadata"]["name"] for item in of_kind(values, "ClusterRole")}


def test_an_image_is_named_by_tag_or_by_digest() -> None:
    digest = f"sha256:{'0' * 64}"
    assert _images({"image": {"repository": "r.example/h", "tag": "1"}}) == {"r.example/h:1"}
    assert _images({"image": {"repository": "r.example/h", "digest": digest}}) == {f"r.example/h@{digest}"}


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ({}, "Never"),
        ({"tag": "1"}, "Never"),
        ({"repository": "r.example/h"}, "IfNotPresent"),
        ({"pullPolicy": "Always"}, "Always"),
        ({"repository": "r.example/h", "pullPolicy": "Never"}, "Never"),
    ],
)
def test_an_image_without_a_registry_is_not_pulled(image: Mapping[str, str], policy: str) -> None:
    assert _pull_policies({"image": image}) == {policy}


def _pull_policies(values: Mapping[str, Any]) -> set[str]:
    return {value for item in objects(values) for name, value in _entries(item) if name == "imagePullPolicy"}


def test_every_image_is_halfcards_from_the_repository_in_the_values() -> None:
    """All options are on: an installation without a network has no other images."""
    elsewhere = {"repository": "r.example/h", "tag": "1", "pullPolicy": "Never"}
    on = {"monitoring": {"serviceMonitor": True, "rules": True, "dashboard": True}, "webhooks": {"guard": True}}
    for certificates in ("halfcard", "cert-manager"):
        values = {
            **on,
            "image": elsewhere,
            "imagePullSecrets": [{"name": "key"}],
            "certificates": {"from": certificates},
        }
        assert _images(values) == {"r.example/h:1"}
        pods = [item["spec"]["template"]["spec"] for item in objects(values) if item["kind"] in _POD_KINDS]
        assert {each["imagePullSecrets"][0]["name"] for each in pods} == {"key"}
        assert {each["imagePullPolicy"] for pod in pods for each in pod["containers"]} == {"Never"}
    assert {item["kind"] for item in objects({}) if "template" in item.get("spec", {})} == _POD_KINDS


_POD_KINDS: Final = {"Deployment", "DaemonSet"}


def _images(values: Mapping[str, Any]) -> set[str]:
    return {value for item in objects(values) for name, value in _entries(item) if name == "image"}


def _entries(value: object) -> Iterator[tuple[str, Any]]:
    """Yields the entries of all nested mappings."""
    if isinstance(value, dict):
        yield from value.items()
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _entries(each)


def test_without_its_own_scheduler_nothing_of_it_is_installed() -> None:
    assert [item["kind"] for item in objects({}) if item["metadata"]["name"] == names.SCHEDULER] == []


def test_its_own_scheduler_has_the_clusters_version_whatever_a_provider_adds_to_it() -> None:
    for version in ("v1.35.4", "v1.35.4-eks-4136f65", "v1.35.4-gke.1032000", "v1.35.4+k3s1"):
        arguments = ("--set=scheduler.enabled=true", f"--kube-version={version}", f"--namespace={names.NAMESPACE}")
        done = helm("template", "halfcard", str(CHART), *arguments)
        (image,) = re.findall(r"image: (.*kube-scheduler.*)", done.stdout)
        assert image == "registry.k8s.io/kube-scheduler:v1.35.4"
    other = {"repository": "registry.example/kube-scheduler", "digest": f"sha256:{'0' * 64}"}
    assert f"registry.example/kube-scheduler@sha256:{'0' * 64}" in _images(own_scheduler(image=other))


def own_scheduler(settings: Mapping[str, Any] = MappingProxyType({}), **more: Any) -> dict[str, Any]:
    return {"settings": dict(settings), "scheduler": {"enabled": True, **more}}


def data(values: Mapping[str, Any], name: str) -> Any:
    """The content of a ConfigMap with one file."""
    (found,) = (item["data"] for item in of_kind(values, "ConfigMap") if item["metadata"]["name"] == name)
    (text,) = found.values()
    return yaml.safe_load(text)


@pytest.mark.parametrize("settings", [{}, {"dialects": ["hami"], "vcuda_prefixes": [{"prefix": "example.com"}]}])
def test_its_own_scheduler_sends_the_resources_of_the_settings(settings: Mapping[str, Any]) -> None:
    found = data(own_scheduler(settings), names.SCHEDULER)["extenders"]
    ((extender,), shipped) = found, configuration_for(read_settings(settings), "h")
    (wanted,) = yaml.safe_load(shipped)["extenders"]
    assert sorted(extender.pop("managedResources"), key=str) == sorted(wanted.pop("managedResources"), key=str)
    assert {key for key in wanted if wanted[key] != extender[key]} == {"urlPrefix", "tlsConfig"}


@pytest.mark.parametrize(
    ("values", "profiles"),
    [
        (own_scheduler(), [names.SCHEDULER]),
        (own_scheduler(alsoNamed=["volcano"]), [names.SCHEDULER, "volcano"]),
        (own_scheduler({"set_scheduler_name": "gpu"}), ["gpu"]),
        (own_scheduler({"derived_resources": {"schedulers": []}}), [names.SCHEDULER]),
    ],
)
def test_halfcard_serves_the_profiles_of_its_own_scheduler(values: Mapping[str, Any], profiles: list[str]) -> None:
    configured = data(values, names.SCHEDULER)
    assert [each["schedulerName"] for each in configured["profiles"]] == profiles
    assert configured["leaderElection"]["resourceName"] == names.SCHEDULER
    settings = read_settings(data(values, names.SETTINGS_MAP))
    assert (settings.set_scheduler_name, settings.served_schedulers()) == (profiles[0], frozenset(profiles))


def test_schedulers_of_the_settings_are_served_beside_its_own() -> None:
    settings = read_settings(data(own_scheduler({"schedulers": ["default-scheduler"]}), names.SETTINGS_MAP))
    assert settings.served_schedulers() == {names.DEFAULT_SCHEDULER, names.SCHEDULER}


def test_nothing_runs_when_the_chart_is_uninstalled() -> None:
    """A hook would need the image, which may be what is missing."""
    rendered = objects(
        {
            "monitoring": {"serviceMonitor": True, "rules": True},
            "webhooks": {"guard": True},
            "certificates": {"from": "cert-manager"},
        }
    )
    hooks = [
        item["metadata"]["annotations"].get("helm.sh/hook", "")
        for item in rendered
        if item["metadata"].get("annotations")
    ]
    assert {each for each in hooks if each} <= {"test"}


def test_with_cert_manager_halfcard_writes_only_caller_tokens_and_mounts_the_secrets_of_cert_manager() -> None:
    made = objects({"certificates": {"from": "cert-manager"}})
    assert [item["metadata"]["name"] for item in made if item["kind"] == "Secret"] == [names.ADMISSION_CALLERS]
    rules = [rule for item in made if item["kind"] in ("Role", "ClusterRole") for rule in item["rules"]]
    written = [rule for rule in rules if "secrets" in rule.get("resources", ()) and rule["verbs"] != ["get"]]
    assert [rule["resourceNames"] for rule in written if rule["verbs"] != ["create"]] == [[names.ADMISSION_CALLERS]]
    secrets = {item["spec"]["secretName"] for item in made if item["kind"] == "Certificate"}
    mounted = {
        volume["secret"]["secretName"]
        for item in made
        if item["kind"] == "Deployment"
        for volume in item["spec"]["template"]["spec"]["volumes"]
        if "secret" in volume
    }
    assert (mounted - {names.ADMISSION_CALLERS}) | {names.SCHEDULER_TLS} <= secrets
    injected = [item["metadata"]["annotations"] for item in made if item["kind"].endswith("WebhookConfiguration")]
    certificates = {f"{names.NAMESPACE}/{item['metadata']['name']}" for item in made if item["kind"] == "Certificate"}
    assert len(injected) == 2
    assert {each["cert-manager.io/inject-ca-from"] for each in injected} <= certificates


def test_plain_metrics_come_with_the_service_that_gpu_manager_had() -> None:
    assert [item for item in of_kind({}, "Service") if item["metadata"]["name"] == "gpu-manager-metric"] == []
    made = objects({"agent": {"arguments": ["--plain-metrics"]}})
    (service,) = (item for item in made if item["metadata"]["name"] == "gpu-manager-metric")
    (agent,) = (item["spec"]["template"] for item in made if item["kind"] == "DaemonSet")
    (container,) = agent["spec"]["containers"]
    assert service["spec"]["selector"].items() <= agent["metadata"]["labels"].items()
    (port,) = service["spec"]["ports"]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    asked = service["metadata"]["annotations"]
    assert str(ports[port["targetPort"]]) == str(port["port"]) == asked["prometheus.io/port"] == str(names.AGENT_PORT)
    assert asked["prometheus.io/path"] == names.GPU_MANAGER_METRICS_PATH
    assert "--plain-metrics" in container["args"]


def test_the_service_monitor_selects_every_pod() -> None:
    values = {"monitoring": {"serviceMonitor": True, "rules": True, "dashboard": True}}
    made = {(item["kind"], item["metadata"]["name"]): item for item in objects(values)}
    service = made["Service", "halfcard-metrics"]
    pods = [item["spec"]["template"] for item in made.values() if item["kind"] in ("Deployment", "DaemonSet")]
    scraped = {port["targetPort"] for port in service["spec"]["ports"]}
    assert len(pods) == 5
    for pod in pods:
        assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
        ports = {port["name"] for port in pod["spec"]["containers"][0]["ports"]}
        assert len(ports & scraped) == 1, "each process has its metrics at one of them"
    monitor = made["ServiceMonitor", "halfcard"]["spec"]
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert [each["port"] for each in monitor["endpoints"]] == [each["name"] for each in service["spec"]["ports"]]
    assert made["PrometheusRule", "halfcard"]["spec"]["groups"]
    assert json.loads(made["ConfigMap", "halfcard-dashboard"]["data"]["halfcard.json"])["uid"] == "halfcard"


@pytest.fixture
def halfcards_namespace(cluster: Cluster) -> Iterator[Cluster]:
    cluster.create_namespace(names.NAMESPACE)
    yield cluster
    cluster.kubectl("delete", "namespace", names.NAMESPACE)


def test_the_api_server_accepts_the_manifests_without_a_warning(halfcards_namespace: Cluster) -> None:
    done = halfcards_namespace.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", str(MANIFESTS))
    assert (done.code, [line for line in done.stderr.splitlines() if "last-applied" not in line]) == (0, [])


def test_the_api_server_accepts_the_charts_own_scheduler_without_a_warning(halfcards_namespace: Cluster) -> None:
    arguments = (f"--namespace={names.NAMESPACE}", "--no-hooks")
    rendered = helm("template", "halfcard", str(CHART), *arguments, values=own_scheduler()).stdout
    done = halfcards_namespace.kubectl("apply", "--dry-run=server", "--validate=strict", "-f-", stdin=rendered)
    assert (done.code, [line for line in done.stderr.splitlines() if "last-applied" not in line]) == (0, [])


def test_the_kustomization_of_the_page_works(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "deploy").symlink_to(MANIFESTS.parent)
    (tmp_path / "own").mkdir()
    (kustomization,) = re.findall(r"^```text kustomization\n(.*?)^```$", _PAGE.read_text(), re.DOTALL | re.MULTILINE)
    (tmp_path / "own" / "kustomization.yaml").write_text(kustomization)
    done = cluster.kubectl("kustomize", str(tmp_path / "own"))
    assert done.code == 0, done.stderr
    assert _named(done.stdout, ["Deployment", "DaemonSet"]) == _named(
        MANIFESTS.read_text(), ["Deployment", "DaemonSet"]
    )
    assert set(re.findall(r"image: (\S+?):", done.stdout)) == {"registry.example/halfcard"}


def _named(text: str, kinds: Sequence[str]) -> set[str]:
    return {item["metadata"]["name"] for item in yaml.safe_load_all(text) if item["kind"] in kinds}
