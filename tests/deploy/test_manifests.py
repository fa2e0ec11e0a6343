"""What installs Halfcard says what its processes understand, and gives them no more than they need."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from admission.__main__ import _parser as admission_parser
from certs.__main__ import _parser as certs_parser
from deviceplugin.arguments import add_arguments
from extender.__main__ import _parser as extender_parser
from halfcard import names
from quota.__main__ import _parser as quota_parser
from settings.installation import read_settings

from .rendered import CHART, MANIFESTS, every, pods

PODS: Final = pods()
WEAK: Final = {name: each["spec"] for name, each in PODS.items() if name != names.AGENT}
PORTS: Final = {names.ADMISSION_SERVICE: names.ADMISSION_PORT, names.EXTENDER_SERVICE: names.EXTENDER_PORT}

each_pod = pytest.mark.parametrize("name", sorted(PODS))
each_weak = pytest.mark.parametrize("name", sorted(WEAK))


def container(name: str) -> dict[str, Any]:
    (only,) = PODS[name]["spec"]["containers"]
    return dict(only)


def agent_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser


PARSERS: Final = {
    "admission": admission_parser,
    "certs": certs_parser,
    "deviceplugin": agent_parser,
    "extender": extender_parser,
    "quota": quota_parser,
}


@each_pod
def test_the_process_takes_its_arguments(name: str) -> None:
    python, option, module, *first = container(name)["command"]
    assert (python, option) == ("python", "-m")
    PARSERS[module]().parse_args([*first, *container(name)["args"]])


@each_pod
def test_files_named_by_arguments_are_mounted(name: str) -> None:
    spec = container(name)
    given = [each.partition("=")[2] for each in spec["args"] if "=/" in each]
    mounts = tuple(each["mountPath"] for each in spec["volumeMounts"])
    assert given and [path for path in given if not path.startswith(mounts)] == []
    assert {each["name"] for each in spec["volumeMounts"]} == {each["name"] for each in PODS[name]["spec"]["volumes"]}


@each_pod
def test_probes_use_the_paths_and_port_that_are_served(name: str) -> None:
    spec = container(name)
    ports = {each["name"]: each["containerPort"] for each in spec["ports"]}
    asked = {kind: spec[kind]["httpGet"] for kind in spec if kind.endswith("Probe")}
    port, number = ("status", names.AGENT_PORT) if name == names.AGENT else ("metrics", names.STATUS_PORT)
    assert asked["readinessProbe"] == {"path": names.READY_PATH, "port": port}
    assert asked["startupProbe"] == {"path": names.HEALTH_PATH, "port": port}
    assert ports[port] == number


@pytest.mark.parametrize("name", PORTS)
def test_a_service_leads_to_the_port_where_its_pods_listen(name: str) -> None:
    (port,) = every("Service")[name]["spec"]["ports"]
    ports = {each["name"]: each["containerPort"] for each in container(name)["ports"]}
    assert (port["port"], ports[port["targetPort"]]) == (443, PORTS[name])
    assert every("Service")[name]["spec"]["selector"].items() <= PODS[name]["metadata"]["labels"].items()


@each_pod
def test_it_has_an_account_with_rights(name: str) -> None:
    account = PODS[name]["spec"]["serviceAccountName"]
    assert account == name and account in every("ServiceAccount")
    bound = {each["name"] for binding in every("ClusterRoleBinding").values() for each in binding["subjects"]}
    granted = {each["name"] for binding in every("RoleBinding").values() for each in binding["subjects"]}
    assert account in bound | granted


@each_weak
def test_all_but_the_agent_have_no_privileges(name: str) -> None:
    assert WEAK[name]["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "fsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container(name)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {kind for volume in WEAK[name]["volumes"] for kind in volume} <= {"name", "secret", "configMap"}
    assert not WEAK[name].keys() & {"hostNetwork", "hostPID", "hostIPC"}


def test_a_pod_waits_for_its_certificate_and_its_key_is_for_its_group_only() -> None:
    for name in PORTS:
        secrets = [each["secret"] for each in PODS[name]["spec"]["volumes"] if "secret" in each]
        assert {each["key"] for each in secrets[0]["items"]} == {"tls.crt", "tls.key", "ca.crt"}
        assert all(each["defaultMode"] == 0o440 and not each.get("optional") for each in secrets)


def test_the_webhook_waits_for_its_caller_tokens() -> None:
    secrets = [each["secret"] for each in PODS[names.ADMISSION_SERVICE]["spec"]["volumes"] if "secret" in each]
    assert {"key": "tokens", "path": "tokens"} in secrets[1]["items"]


def test_replicas_are_spread_and_drained_one_at_a_time() -> None:
    many = {name for name, each in every("Deployment").items() if each["spec"]["replicas"] > 1}
    assert many == {names.ADMISSION_SERVICE, names.EXTENDER_SERVICE, names.QUOTA_SERVICE}
    assert every("PodDisruptionBudget").keys() == many
    for name in many:
        (spread,) = PODS[name]["spec"]["topologySpreadConstraints"]
        assert spread["labelSelector"]["matchLabels"].items() <= PODS[name]["metadata"]["labels"].items()
        assert every("PodDisruptionBudget")[name]["spec"]["selector"] == spread["labelSelector"]


def test_priorities_protect_the_pods_that_matter() -> None:
    """Without admission no GPU pods are created, without an agent a node gives none of its cards away."""
    classes = {name: each["spec"]["priorityClassName"] for name, each in PODS.items()}
    assert classes.pop(names.AGENT) == "system-node-critical"
    assert set(classes.values()) == {"system-cluster-critical"}


def test_the_settings_are_the_defaults() -> None:
    text = every("ConfigMap")["halfcard-settings"]["data"]["settings.yaml"]
    assert read_settings(yaml.safe_load(text)) == read_settings({})


def test_other_namespaces_get_only_roles_and_bindings() -> None:
    elsewhere = [item for item in MANIFESTS if item["metadata"].get("namespace", names.NAMESPACE) != names.NAMESPACE]
    assert {item["kind"] for item in elsewhere} == {"Role", "RoleBinding"}
    for role in (item for item in elsewhere if item["kind"] == "Role"):
        (rule,) = role["rules"]
        assert rule.get("resourceNames") or rule == {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}


def test_uninstalling_the_chart_keeps_the_kinds() -> None:
    for kind in every("CustomResourceDefinition").values():
        assert kind["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


@pytest.mark.parametrize("file", [*CHART.glob("rbac/*.yaml"), *CHART.glob("kinds/*.yaml")], ids=lambda file: file.stem)
def test_rights_and_kinds_are_those_of_the_chart(file: Path) -> None:
    missing = [item for item in yaml.safe_load_all(file.read_text()) if item not in MANIFESTS]
    assert missing == [], "run `python -m deploy.chart --helm FILE`"


def test_every_right_has_its_reason() -> None:
    verbs = ("- get", "- list", "- watch", "- patch", "- create", "- update", "- delete")
    lines = [line for file in CHART.glob("rbac/*.yaml") for line in file.read_text().splitlines()]
    rights = [line for line in lines if line.strip().startswith(verbs)]
    assert len(rights) >= 50
    assert [line for line in rights if "#" not in line and line.strip() != "- patch"] == []
