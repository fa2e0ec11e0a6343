"""A refusal of the API server names the role to ask for."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from cli.__main__ import main, parser
from cli.command_tree import options, subcommands
from cli.output.roles import ROLES, role_advice

from .api_stand_in import api_server
from .command import ROOT

FORBIDDEN = 'nodes is forbidden: User "mia" cannot list resource "nodes" in API group "" at the cluster scope'


def test_a_refused_command_names_the_role_and_the_line_that_grants_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with api_server(tmp_path, {"/api/v1/nodes": FORBIDDEN}, lambda _: (403, "")) as kubeconfig:
        assert main(["inspect", "--kubeconfig", str(kubeconfig)]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        "halfcard inspect: ask an administrator for the ClusterRole halfcard-inspect: kubectl create clusterrolebinding"
        " NAME --clusterrole=halfcard-inspect --user=mia"
    )


def test_a_role_for_a_namespace_is_bound_there() -> None:
    assert role_advice("quota explain", FORBIDDEN).endswith(
        "kubectl create rolebinding NAME -n NAMESPACE --clusterrole=view --user=mia"
    )


@pytest.mark.parametrize("error", ["", "the API server cannot be reached", 'admission webhook "x" denied the request'])
def test_other_errors_name_no_role(error: str) -> None:
    assert role_advice("inspect", error) == ""


def test_every_command_that_asks_an_api_server_has_a_role() -> None:
    tree = subcommands(parser())
    leaves = {name: command for name, command in tree.items() if not subcommands(command)}
    for name, command in tree.items():
        leaves |= {f"{name} {below}": leaf for below, leaf in subcommands(command).items()}
    assert {name for name, command in leaves.items() if "--server" in options(command)} == set(ROLES)


def test_every_role_comes_with_the_chart_or_with_kubernetes() -> None:
    files = (ROOT / "deploy" / "chart" / "halfcard" / "rbac").glob("people*.yaml")
    items = [item for file in files for item in yaml.safe_load_all(file.read_text())]
    ours = {item["metadata"]["name"] for item in items if item["kind"] == "ClusterRole"}
    assert {role.name for role in ROLES.values()} - ours <= {"view", "admin", "cluster-admin"}
