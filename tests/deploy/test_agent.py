"""The node agent's manifests: what its process reads, in the words of the code, and no more power than it needs."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from typing import Any, Final

import pytest

import deviceplugin
from deviceplugin.advertise.announcement import announcement
from deviceplugin.arguments import add_arguments
from halfcard import names
from halfcard.cards import Card, Node
from halfcard.claims import ContainerStage, Need
from halfcard.dialects import ALL, Dialects
from halfcard.placing.records import PlacedPod, RecordWriter, write
from halfcard.pod.owned_annotations import is_owned

from .rendered import CHART, every

_ACCOUNT: Final = names.AGENT_SERVICE_ACCOUNT.rpartition(":")[2]
_VERBS: Final = ("- get", "- list", "- watch", "- patch", "- create")
_TEMPLATE: Final = CHART / "templates" / "agent.yaml"
_RIGHTS: Final = CHART / "rbac" / "agent.yaml"


def shipped(kind: str, name: str = _ACCOUNT) -> Any:
    return every(kind)[name]


WRITTEN: Final = announcement([Card(0, "Tesla T4", 15109, "GPU-0", replicas=2)], {}).labels or {}
POD: Final = shipped("DaemonSet")["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]


# --- the process


def test_the_process_accepts_the_arguments() -> None:
    read = arguments(each.replace("$(NODE_NAME)", "n") for each in CONTAINER["args"])
    assert (read.node, CONTAINER["command"]) == ("n", ["python", "-m", deviceplugin.__name__])
    assert mounted(str(read.settings.parent)) == {"configMap": {"name": "halfcard-settings"}}


def test_all_host_paths_that_it_uses_are_mounted_at_the_same_path() -> None:
    read = arguments()
    folders = [read.kubelet_plugins, read.pod_resources.parent, read.cdi_dir, read.state_dir, read.run_dir]
    for folder in {*map(str, folders), *names.CDI_FOLDERS, "/sys/fs/cgroup"}:
        assert mounted(folder)["hostPath"]["path"] == folder


def test_only_mounts_that_it_writes_are_writable() -> None:
    read = arguments()
    writable = {mount["mountPath"] for mount in CONTAINER["volumeMounts"] if not mount.get("readOnly")}
    assert writable == {str(each) for each in (read.kubelet_plugins, read.cdi_dir, read.state_dir, read.run_dir)}


def test_only_the_port_of_gpu_manager_is_open_on_the_node() -> None:
    plain, usage = CONTAINER["ports"]
    assert plain["containerPort"] == plain["hostPort"] == names.AGENT_PORT == arguments().http.port
    assert usage["containerPort"] == names.AGENT_TLS_PORT == arguments().https.port
    assert "hostPort" not in usage


def test_it_sees_all_cards_with_nvml_and_with_cuda_for_trials() -> None:
    env = {each["name"]: each.get("value") for each in CONTAINER["env"]}
    assert env[names.VISIBLE_DEVICES] == "all"
    assert env[names.DRIVER_CAPABILITIES] == "compute,utility"


# --- what it may do


def test_it_has_no_privileges_that_it_does_not_need() -> None:
    may = CONTAINER["securityContext"]
    assert (may["privileged"], may["allowPrivilegeEscalation"], may["readOnlyRootFilesystem"]) == (False, False, True)
    assert may["capabilities"] == {"drop": ["ALL"]}
    assert not POD.get("hostNetwork") and not POD.get("hostIPC")


def test_it_runs_as_the_account_that_admission_trusts_on_labelled_nodes() -> None:
    assert shipped("ServiceAccount")["metadata"]["namespace"] == names.NAMESPACE
    assert POD["serviceAccountName"] == _ACCOUNT
    assert POD["nodeSelector"] == {names.AGENT_LABEL: "true"}


def test_every_right_and_mount_has_its_reason() -> None:
    rights = [line for line in _RIGHTS.read_text().splitlines() if line.strip().startswith(_VERBS)]
    mounts = _TEMPLATE.read_text().partition("volumeMounts:")[2].partition("volumes:")[0].splitlines()
    mounted = [line for line in mounts if "- name:" in line and "settings" not in line]
    assert len(rights) >= 11 and len(mounted) == 7
    assert [line for line in (*rights, *mounted) if "#" not in line] == []


@pytest.mark.parametrize("name", [_ACCOUNT, f"{_ACCOUNT}-events"])
def test_policies_limit_it_to_its_own_node_to_records_and_to_its_own_events(name: str) -> None:
    policy, binding = shipped("ValidatingAdmissionPolicy", name), shipped("ValidatingAdmissionPolicyBinding", name)
    assert binding["spec"] == {"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]}
    (condition,) = policy["spec"]["matchConditions"]
    assert condition["expression"] == f"request.userInfo.username == '{names.AGENT_SERVICE_ACCOUNT}'"


def records() -> set[str]:
    """Returns the annotations of all records."""
    claims = [claim for each in ALL for amounts in each.examples if (claim := each.claim(amounts))]
    found: set[str] = set()
    for claim in claims:
        needs, cards = (Need(ContainerStage.APP, 0, claim),), tuple(range(claim.cards))
        node = Node("n1", tuple(Card(at, "T4", 15109) for at in cards))
        found |= write(PlacedPod(node, ("c",), needs, (cards,)), 1, Dialects(), by=RecordWriter.EXTENDER).keys()
    return found


@pytest.mark.parametrize("key", sorted(records()))
def test_the_policy_allows_every_record_that_the_code_writes(key: str) -> None:
    variables = shipped("ValidatingAdmissionPolicy")["spec"]["variables"]
    (text,) = (each["expression"] for each in variables if each["name"] == "foreign")
    prefixes = re.findall(r"startsWith\('([^']+)'\)", text)
    parts = re.findall(r"contains\('([^']+)'\)", text)
    assert key.startswith(tuple(prefixes)) or any(part in key for part in parts)
    assert all(is_owned(f"{each}x") for each in prefixes) and all(is_owned(f"a.example{part}") for part in parts)


@pytest.mark.parametrize("key", [*WRITTEN, names.MADE_UP_LABEL, names.INVENTORY, names.ANNOUNCED])
def test_the_policy_allows_what_the_code_writes_to_a_node(key: str) -> None:
    variables = shipped("ValidatingAdmissionPolicy")["spec"]["variables"]
    (text,) = (each["expression"] for each in variables if each["name"] == "foreignOnNode")
    assert key.startswith(tuple(re.findall(r"startsWith\('([^']+)'\)", text)))


def arguments(given: Iterable[str] = ()) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args([*given])


def mounted(path: str) -> dict[str, Any]:
    """The volume that stands there, without its name."""
    (mount,) = (each for each in CONTAINER["volumeMounts"] if each["mountPath"] == path)
    (volume,) = (each for each in POD["volumes"] if each["name"] == mount["name"])
    return {key: value for key, value in volume.items() if key != "name"}
