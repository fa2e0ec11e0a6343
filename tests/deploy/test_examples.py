"""Every manifest of the documents that people start from is an example, and is judged as it should be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from halfcard.problems import (
    DERIVED,
    MAX_MESSAGE_BYTES,
    QUOTA_GATE,
    RULES,
    SLOTS,
    UNHIDDEN,
    UNREPAIRED,
    Problem,
    message,
)
from kube.manifests.documents import files_below

from .examples import EXAMPLES, Example, title, verdict

VERDICTS: Final[Mapping[str, Mapping[str, str]]] = {
    "gpu-manager": {
        # GaiaGPU on a cluster of one's own: its control plane, a quota, and pods of four sizes
        "Pod kube-system/gpu-admission": "allowed",
        "Policy /": "allowed",
        "Pod kube-system/kube-scheduler": "allowed",
        "ClusterRole /system:kube-scheduler": "allowed",
        "ResourceQuota default/resource-quota": "allowed",
        "Pod default/vcuda": "allowed",
        "Pod default/vcuda20": "allowed",
        "Pod default/vcuda100": "allowed",
        "Pod default/vcuda200": "allowed HC040 repaired",
        # gpu-manager in a product: one card, 0.3 of a card with 5 GiB, and the units of its console
        "Pod default/one-card": "allowed",
        "Pod default/nginx": "allowed repaired",
        "Pod default/console": "allowed repaired",
    },
    "tuya-half-cards": {
        # GPU virtualisation at Tuya: two halves, shared memory, a card of its own, and who is asked about them
        "Pod default/notebook": "allowed repaired",
        "Pod default/inference": "allowed repaired",
        "Pod default/training": "allowed repaired",
        "KubeSchedulerConfiguration /": "allowed",
    },
    "gpushare": {
        # GPU nodes for Docker and Kubernetes, the first way
        "KubeSchedulerConfiguration /": "allowed",
        "Deployment kube-system/gpushare-schd-extender": "allowed",
        "Deployment default/binpack-1": "allowed",
        "Pod default/binpack-1-79dd548c78-*": "allowed repaired",
        # what fits on a node and on none of its cards
        "Pod default/first": "allowed repaired",
        "Pod default/second": "allowed repaired",
        "Pod default/third": "allowed repaired",
    },
    "nvidia-time-slicing": {
        # GPU nodes for Docker and Kubernetes, the second way
        "ConfigMap gpu-operator/time-slicing-config": "allowed",
        "Deployment default/nvidia-plugin-test": "allowed",
        # how Kubernetes reaches a GPU: two containers with two cards each
        "Pod default/gpu-pod": "allowed repaired",
        # slices under their own name
        "Pod default/slice": "allowed repaired",
    },
    "volcano": {
        # GPU nodes for Docker and Kubernetes, the third way
        "ConfigMap volcano-system/volcano-scheduler-configmap": "allowed",
        "Pod default/gpu-pod1": "allowed HC043 repaired",
        "ConfigMap knative-serving/config-features": "allowed",
        "InferenceService default/volcano": "allowed HC043",
        # whole cards
        "Pod default/whole-card": "allowed HC043 repaired",
    },
    "hami": {
        "Pod default/two-parts": "allowed repaired",
        "Pod default/half-the-memory": "allowed repaired",
        "Pod default/no-count": "allowed noted repaired",
        "Pod default/with-sidecar": "allowed repaired",
    },
    "mistakes": {
        "Pod default/cards-and-gibibytes": "allowed repaired",
        "Pod default/odd-mebibytes": "allowed noted repaired",
        "Pod default/three-cards": "allowed HC044 repaired",
        "Pod default/one-and-a-half-cards": "refused HC002",
        "Pod default/150-per-cent": "refused HC002",
        "Pod default/too-fine": "refused HC002",
        "Pod default/half-an-nvidia-card": "refused HC001",
        "Pod default/no-number": "refused HC001",
        "Pod default/five-and-a-half": "refused HC003",
        "Pod default/requests-are-not-limits": "refused HC004",
        "Pod default/no-memory": "refused HC006",
        "Pod default/memory-alone": "refused HC007",
        "Pod default/larger-than-a-card": "refused HC008",
        "Pod default/limit-below-share": "refused HC009",
        "Pod default/limit-on-whole-cards": "allowed HC041 repaired",
        "Pod default/more-memory-than-the-cards": "allowed HC040 repaired",
        "Pod default/everything-at-once": "refused HC002 HC004 HC020 HC021 HC026 HC042",
        "Deployment default/in-a-template": "refused HC002",
        "Pod default/wrong-type": "refused HC031",
        "Pod default/unknown-policy": "refused HC014",
        "Pod default/more-cards-than-a-node": "allowed HC048 repaired",
        "Pod default/two-systems-in-a-container": "refused HC010",
        "Pod default/two-systems-in-a-pod": "refused HC011",
        "Pod default/memory-in-two-ways": "refused HC012",
        "Pod default/more-than-all-cores": "refused HC013",
        "Pod default/volcano-vgpu": "allowed HC047",
        "Pod default/fraction-in-an-annotation": "allowed HC047",
        "Pod default/sees-all-cards": "refused HC021",
        "Pod default/sees-all-by-configmap": "refused HC023",
        "Pod default/preloads-a-library": "refused HC022",
        "Pod default/mounts-a-device": "refused HC024",
        "Pod default/mounts-the-kubelet-folder": "refused HC024",
        "Pod default/lists-devices-by-mount": "refused HC027",
        "Pod default/forged-record": "refused HC020",
        "Pod default/privileged-share": "refused HC025",
        "Pod default/privileged-whole-card": "allowed HC042 repaired",
        "Pod default/chooses-its-node": "refused HC026",
        "Pod default/another-scheduler": "allowed HC043 repaired",
        "Pod default/library-path": "allowed HC045 repaired",
        "Pod default/device-class": "refused HC017",
        "Pod default/resource-claim": "allowed HC046",
        "ResourceQuota default/quota-of-limits": "allowed noted repaired",
        "ResourceQuota default/quota-says-it-twice": "allowed noted repaired",
        "ResourceQuota default/quota-of-cards": "allowed noted repaired",
        "ResourceQuota default/quota-too-fine": "refused HC030",
        "GpuQuota default/quota-of-nothing": "refused HC032",
        "Deploymnt /misspelled-kind": "refused HC032",
    },
}

each_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.folder.name)


def test_every_example_is_in_the_table() -> None:
    assert {example.folder.name for example in EXAMPLES} == set(VERDICTS)


@each_example
def test_every_manifest_is_judged_as_the_table_says(example: Example) -> None:
    assert {title(item): verdict(item) for item in example.items()} == VERDICTS[example.folder.name]


@each_example
def test_the_expected_output_is_the_output(example: Example) -> None:
    assert example.judged() == example.expected.read_text()


@each_example
def test_the_readme_shows_what_the_command_prints(example: Example) -> None:
    for command, output in example.shown().items():
        assert example.answer(command) == output, command


@each_example
def test_the_readme_shows_every_manifest(example: Example) -> None:
    shown = "".join(example.shown().values())
    manifests = [str(path.relative_to(example.folder)) for path in files_below(example.folder / "manifests")]
    assert [path for path in manifests if f" {path}:" not in shown] == []


@each_example
def test_no_message_is_cut(example: Example) -> None:
    for item in example.items():
        assert "…" not in "".join(item["warnings"]), title(item)
        assert " more)" not in _denial(item), title(item)
        assert len(_denial(item).encode()) <= MAX_MESSAGE_BYTES


def _denial(item: dict[str, Any]) -> str:
    return message(Problem(**problem) for problem in item["problems"])


def test_every_rule_has_a_mistake_that_shows_it() -> None:
    shown = {code for verdict in VERDICTS["mistakes"].values() for code in verdict.split() if code in RULES}
    repaired_before_it_is_judged = {DERIVED.code, SLOTS.code, UNHIDDEN.code, UNREPAIRED.code}
    broken_by_an_update_alone = {QUOTA_GATE.code}
    assert shown == set(RULES) - repaired_before_it_is_judged - broken_by_an_update_alone
