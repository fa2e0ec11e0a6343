"""What the page of platforms promises: files, paths, and constraints for OpenShift, which allow
what the shipped pods use, and the agent nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from deploy.chart.made import MANIFESTS
from halfcard import names
from tests.docs.pages import ROOT, fences

Object = Mapping[str, Any]

OPENSHIFT: Final = MANIFESTS.parent / "openshift.yaml"
CONSTRAINTS, BINDING = yaml.safe_load_all(OPENSHIFT.read_text())
NONROOT_VOLUMES: Final = {
    *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral"),
    *("persistentVolumeClaim", "projected", "secret"),
}
"""The kinds of volumes that OpenShift's own nonroot-v2 allows."""

ONLY_WITH_VALUES: Final = {"halfcard-scheduler"}
TOKEN: Final = "projected"
"""The volume of the account's token, which the API server adds."""


def pod_specs() -> Iterator[tuple[str, Object]]:
    for item in yaml.safe_load_all(MANIFESTS.read_text()):
        if item and item["kind"] in ("Deployment", "DaemonSet"):
            yield item["metadata"]["name"], item["spec"]["template"]["spec"]


SPECS: Final = dict(pod_specs())
AGENT: Final = SPECS.pop(names.AGENT)


def kinds_of_volumes(spec: Object) -> set[str]:
    return {kind for volume in spec.get("volumes", ()) for kind in volume if kind != "name"} | {TOKEN}


def containers(spec: Object) -> list[Object]:
    return [*spec.get("initContainers", ()), *spec["containers"]]


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_all_but_the_agent_fit_nonroot(spec: Object) -> None:
    assert not {"hostPID", "hostNetwork", "hostIPC"} & spec.keys()
    assert kinds_of_volumes(spec) <= NONROOT_VOLUMES
    for container in containers(spec):
        security = {**spec["securityContext"], **container["securityContext"]}
        assert security["runAsNonRoot"] and security["runAsUser"] > 0
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert security["capabilities"] == {"drop": ["ALL"]} and not security["allowPrivilegeEscalation"]
        assert not any("hostPort" in port for port in container.get("ports", ()))


def test_each_of_their_accounts_may_use_nonroot() -> None:
    accounts = {spec["serviceAccountName"] for spec in SPECS.values()}
    assert {each["name"] for each in BINDING["subjects"]} == accounts | ONLY_WITH_VALUES


def test_the_agents_constraints_are_what_it_uses() -> None:
    (container,) = containers(AGENT)
    security, ports = container["securityContext"], container["ports"]
    used = {
        "allowHostDirVolumePlugin": "hostPath" in kinds_of_volumes(AGENT),
        "allowHostIPC": AGENT.get("hostIPC", False),
        "allowHostNetwork": AGENT.get("hostNetwork", False),
        "allowHostPID": AGENT.get("hostPID", False),
        "allowHostPorts": any("hostPort" in port for port in ports),
        "allowPrivilegeEscalation": security["allowPrivilegeEscalation"],
        "allowPrivilegedContainer": security["privileged"],
        "readOnlyRootFilesystem": security["readOnlyRootFilesystem"],
        "requiredDropCapabilities": security["capabilities"]["drop"],
        "allowedCapabilities": security["capabilities"].get("add", []),
        "runAsUser": {"type": "MustRunAs", "uid": security["runAsUser"]},
        "seccompProfiles": {"RuntimeDefault": ["runtime/default"]}[security["seccompProfile"]["type"]],
        "volumes": sorted(kinds_of_volumes(AGENT)),
        "users": [f"system:serviceaccount:{names.NAMESPACE}:{AGENT['serviceAccountName']}"],
    }
    assert {field: CONSTRAINTS[field] for field in used} == used


# --- the page --------------------------------------------------------------------------------------------------------

PAGE: Final = ROOT / "docs" / "platforms.md"
SHOWN: Final = [fence.text for fence in fences(PAGE) if fence.language == "text"]


def test_the_files_that_the_page_applies_exist() -> None:
    applied = [line.split()[-1] for text in SHOWN for line in text.splitlines() if " apply -f " in line]
    assert applied == ["deploy/openshift.yaml"] and (ROOT / applied[0]) == OPENSHIFT


def test_kubeadms_mount_has_the_file_of_its_option() -> None:
    (text,) = (each for each in SHOWN if "kubeadm" in each)
    scheduler = yaml.safe_load(text)["scheduler"]
    (option,), (volume,) = scheduler["extraArgs"], scheduler["extraVolumes"]
    assert option["name"] == "config" and Path(option["value"]).parent == Path(volume["mountPath"])
    assert volume["hostPath"] == volume["mountPath"] and volume["readOnly"]
    copied = (ROOT / "deploy" / "scheduler" / "copy-certificate.sh").read_text()
    assert volume["hostPath"] in copied and PAGE.name == "platforms.md"
