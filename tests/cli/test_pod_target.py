"""How kubectl users name a pod or a workload."""

from __future__ import annotations

import pytest

from cli.inputs.pod_target import read_target
from halfcard.exit_codes import UnusableInputError

UNDERSTOOD: dict[tuple[str, str | None], tuple[str, str, str]] = {
    ("train", None): ("Pod", "here", "train"),
    ("train", "team"): ("Pod", "team", "train"),
    ("team/train", None): ("Pod", "team", "train"),
    ("team/train", "team"): ("Pod", "team", "train"),
    ("pod/train", None): ("Pod", "here", "train"),
    ("pods/team/train", None): ("Pod", "team", "train"),
    ("job/train", None): ("Job", "here", "train"),  # not a pod of a namespace with the name job
    ("job.batch/train", "team"): ("Job", "team", "train"),
    ("Deployment/team/train", None): ("Deployment", "team", "train"),
}


@pytest.mark.parametrize(("typed", "meant"), UNDERSTOOD.items(), ids=str)
def test_a_target_is_read_as_kubectl_users_write_it(typed: tuple[str, str | None], meant: tuple[str, str, str]) -> None:
    assert tuple(read_target(*typed, "here")) == meant


@pytest.mark.parametrize("written", ["", "/", "pod/", "team/", "/train", "a/b/c", "deploy/a/b/c", "cronjob/a/b"])
def test_what_is_no_target_is_refused_with_the_forms(written: str) -> None:
    with pytest.raises(UnusableInputError, match="write NAME, NAMESPACE/NAME or KIND/NAME"):
        read_target(written, None, "here")


def test_two_namespaces_are_refused() -> None:
    with pytest.raises(UnusableInputError, match='got "a/train" and the namespace b; name one namespace'):
        read_target("a/train", "b", "here")
