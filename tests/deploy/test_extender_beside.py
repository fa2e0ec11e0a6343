"""The extender beside the scheduler: it listens where the shipped configurations call, with the rights of the chart."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

import pytest
import yaml

from deploy.chart.made import BESIDE, with_image
from extender.__main__ import _parser as extender_parser
from halfcard import names

from .rendered import DEPLOY, pods

ITEM: Final = yaml.safe_load(BESIDE.read_text())
SPEC: Final = ITEM["spec"]["template"]["spec"]
(CONTAINER,) = SPEC["containers"]
CHARTS: Final = pods()[names.EXTENDER_SERVICE]["spec"]
LOOPBACK: Final = "127.0.0.1"


def given() -> Any:
    return extender_parser().parse_args(CONTAINER["args"])


@pytest.mark.parametrize("file", ["from-gpu-manager.yaml", "tuya.yaml", "from-gpushare.yaml"])
def test_it_listens_where_the_configurations_call(file: str) -> None:
    (extender,) = yaml.safe_load((DEPLOY / "scheduler" / file).read_text())["extenders"]
    called = urlsplit(extender["urlPrefix"])
    assert SPEC["hostNetwork"] and called.hostname == given().extender.host == LOOPBACK
    is_said = f"for {file}, change the port to {called.port}" in BESIDE.read_text()
    assert called.port == given().extender.port or is_said


def test_nobody_else_reaches_it() -> None:
    assert given().status.host == LOOPBACK
    probes = [CONTAINER[name]["httpGet"] for name in CONTAINER if name.endswith("Probe")]
    assert {(each["host"], each["port"]) for each in probes} == {(LOOPBACK, given().status.port)}


def test_it_has_what_the_charts_own_extender_has() -> None:
    (charts,) = CHARTS["containers"]
    for field in ("image", "imagePullPolicy", "command", "resources", "securityContext"):
        assert CONTAINER[field] == charts[field], field
    assert SPEC["serviceAccountName"] == CHARTS["serviceAccountName"]
    assert {each["name"] for each in CONTAINER["volumeMounts"]} == {each["name"] for each in SPEC["volumes"]}
    assert ITEM["spec"]["selector"]["matchLabels"].items() <= ITEM["spec"]["template"]["metadata"]["labels"].items()


def test_its_image_has_the_current_version() -> None:
    assert with_image(BESIDE.read_text()) == BESIDE.read_text(), "run `make chart`"
