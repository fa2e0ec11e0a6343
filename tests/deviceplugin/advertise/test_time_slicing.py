"""Time slices of NVIDIA's ConfigMap: which configuration a node uses, and which problems are reported."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deviceplugin.advertise.time_slicing import IN_ONE_PIECE, TimeSlices, chosen, read_slicing
from halfcard import names

T4: Final = """\
version: v1
sharing:
  timeSlicing:
    resources:
    - name: nvidia.com/gpu
      replicas: 4
"""
"""As the operator's guide has it."""

A100: Final = T4.replace("replicas: 4", "replicas: 10")
DATA: Final = {"tesla-t4": T4, "a100": A100, "bad": "version: v2"}

CHOICES: Final = {
    "the default": ("tesla-t4", "", TimeSlices(names.NVIDIA_GPU, 4)),
    "the node's label wins": ("tesla-t4", "a100", TimeSlices(names.NVIDIA_GPU, 10)),
    "neither": ("", "", IN_ONE_PIECE),
}


@pytest.mark.parametrize(("default", "label", "slicing"), CHOICES.values(), ids=CHOICES)
def test_a_node_takes_the_configuration_of_its_label_else_the_default(
    default: str, label: str, slicing: TimeSlices
) -> None:
    assert chosen(DATA, default, label) == (slicing, ())


ASTRAY: Final = {
    "by label": ("", "h100", 'label nvidia.com/device-plugin.config: got "h100"; '),
    "by default": ("h100", "", 'time_slicing.default: got "h100"; '),
}


@pytest.mark.parametrize(("default", "label", "begins"), ASTRAY.values(), ids=ASTRAY)
def test_a_missing_configuration_changes_nothing_and_is_reported(default: str, label: str, begins: str) -> None:
    slicing, (reported,) = chosen(DATA, default, label)
    assert slicing is None
    assert reported == begins + "it names a configuration of the ConfigMap; use a100, bad, tesla-t4"


def slicing_of(time_slicing: str) -> str:
    return f"sharing: {{timeSlicing: {{{time_slicing}}}}}"


GPU: Final = "{name: nvidia.com/gpu, replicas: 4}"

OBEYED: Final = {
    "nothing": ("", IN_ONE_PIECE),
    "nothing but a version": ("version: v1", IN_ONE_PIECE),
    "no sharing": ("version: v1\nsharing:\n", IN_ONE_PIECE),
    "JSON": (
        '{"sharing":{"timeSlicing":{"resources":[{"name":"gpu","replicas":2}]}}}',
        TimeSlices(names.NVIDIA_GPU, 2),
    ),
    "another name by default": (
        slicing_of(f"renameByDefault: true, resources: [{GPU}]"),
        TimeSlices(names.NVIDIA_GPU_SHARED, 4),
    ),
    "one slice each": (
        slicing_of(f"failRequestsGreaterThanOne: true, resources: [{GPU}]"),
        TimeSlices(names.NVIDIA_GPU, 4, fail_above_one=True),
    ),
    "what is said twice the same way": (
        slicing_of(
            "renameByDefault: true, resources: [{name: gpu, replicas: 3, rename: nvidia.com/gpu.shared, devices: all}]"
        ),
        TimeSlices(names.NVIDIA_GPU_SHARED, 3),
    ),
}


@pytest.mark.parametrize(("text", "slicing"), OBEYED.values(), ids=OBEYED)
def test_a_configuration_is_applied(text: str, slicing: TimeSlices) -> None:
    assert read_slicing(text, "c") == (slicing, ())


SLICED: Final = TimeSlices(names.NVIDIA_GPU, 4)
LEFT_ASIDE: Final = {
    "flags": (f"flags: {{migStrategy: single}}\n{slicing_of(f'resources: [{GPU}]')}", SLICED, "c: flags is ignored"),
    "names of cards": ("resources: {gpus: []}", IN_ONE_PIECE, "c: resources is ignored: cards keep"),
    "imex": ("imex: {}", IN_ONE_PIECE, "c: imex is ignored"),
    "a key of tomorrow": ("colour: red", IN_ONE_PIECE, "c: colour is ignored: it is unknown"),
    "MPS": ("sharing: {mps: {resources: []}}", IN_ONE_PIECE, "c: sharing.mps is ignored: MPS is not started"),
    "a typing error": (
        slicing_of(f"renameByDefalt: true, resources: [{GPU}]"),
        SLICED,
        "c: sharing.timeSlicing.renameByDefalt is ignored: it is unknown",
    ),
    "a name of one's own": (
        slicing_of("resources: [{name: nvidia.com/gpu, replicas: 4, rename: nvidia.com/mine}]"),
        SLICED,
        "c: sharing.timeSlicing.resources[0].rename is ignored: renameByDefault alone",
    ),
    "some cards only": (
        slicing_of("resources: [{name: nvidia.com/gpu, replicas: 4, devices: [0]}]"),
        SLICED,
        "c: sharing.timeSlicing.resources[0].devices is ignored: all cards are sliced alike",
    ),
    "MIG": (
        slicing_of("resources: [{name: nvidia.com/mig-1g.5gb, replicas: 2}]"),
        IN_ONE_PIECE,
        "c: sharing.timeSlicing.resources[0].name: nvidia.com/mig-1g.5gb is ignored: only nvidia.com/gpu is",
    ),
}


@pytest.mark.parametrize(("text", "slicing", "begins"), LEFT_ASIDE.values(), ids=LEFT_ASIDE)
def test_ignored_fields_are_reported(text: str, slicing: TimeSlices, begins: str) -> None:
    found, (reported,) = read_slicing(text, "c")
    assert found == slicing
    assert reported.startswith(begins)


MISTAKES: Final = {
    "no YAML": ("a: b: c", "c:1: "),
    "a key twice": ("version: v1\nversion: v1", "c:2: "),
    "a list": ("[]", 'c: got "[]"; it is a mapping of keys to values'),
    "another version": (
        "version: v2",
        'c: version: got "v2"; only the first version of the format is supported; write version: v1',
    ),
    "a text for a mapping": ("sharing: yes", 'c: sharing: got "True"; it is a mapping of keys to values'),
    "no resources": (
        slicing_of("renameByDefault: true"),
        "c: sharing.timeSlicing.resources: is missing; it lists at least one resource",
    ),
    "resources that are none": (slicing_of("resources: []"), 'resources: got "[]"; it lists at least one'),
    "a resource that is none": (slicing_of("resources: [4]"), 'resources[0]: got "4"; it is a mapping'),
    "no name": (slicing_of("resources: [{replicas: 4}]"), "resources[0].name: is missing; it names a resource"),
    "no number": (slicing_of("resources: [{name: gpu}]"), "resources[0].replicas: is missing; it is a whole"),
    "a number in quotes": (slicing_of('resources: [{name: gpu, replicas: "4"}]'), 'replicas: got "4"; it is a whole'),
    "one slice": (slicing_of("resources: [{name: gpu, replicas: 1}]"), "a whole number from 2 to 1024; write"),
    "too many slices": (slicing_of("resources: [{name: gpu, replicas: 1025}]"), 'got "1025"; it is a whole number'),
    "yes for a number": (slicing_of("resources: [{name: gpu, replicas: true}]"), 'got "True"; it is a whole'),
    "a switch in quotes": (
        slicing_of(f'renameByDefault: "true", resources: [{GPU}]'),
        'renameByDefault: got "true"; it is true or false; write true or false, without quotes',
    ),
    "one resource twice": (
        slicing_of(f"resources: [{GPU}, {GPU}]"),
        'resources[1].name: got "nvidia.com/gpu"; every resource is listed once',
    ),
}


@pytest.mark.parametrize(("text", "sentence"), MISTAKES.values(), ids=MISTAKES)
def test_an_invalid_configuration_changes_nothing_and_names_the_invalid_field(text: str, sentence: str) -> None:
    slicing, (reported,) = read_slicing(text, "c")
    assert slicing is None
    assert sentence in reported


JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["v1", "gpu", "all", "yes", "\x1b[0m"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "version",
                    "sharing",
                    "timeSlicing",
                    "resources",
                    "name",
                    "replicas",
                    "renameByDefault",
                    "rename",
                    "\x1b",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.text() | JSON.map(str))
def test_any_text_is_applied_or_reported(text: str) -> None:
    slicing, reported = read_slicing(text, "c")
    assert slicing is not None or reported
    assert all(sentence.isprintable() for sentence in reported)
