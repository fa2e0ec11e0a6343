from __future__ import annotations

import base64
from pathlib import Path

import pytest
import yaml

from cli.__main__ import main
from halfcard import __version__, names

from .command import halfcard, too_wide


def test_the_demonstration_shows_its_scenes_and_what_to_type_next() -> None:
    done = halfcard("demo")

    assert (done.code, done.err) == (0, "")
    assert "pod/nginx created" in done.out
    assert "Error from server (Forbidden)" in done.out
    assert "Warning: " in done.out
    assert "What to type next" in done.out
    assert too_wide(done.out) == []


def test_the_demonstration_gives_stored_pods_their_cards() -> None:
    text = halfcard("demo").out
    told, _, cards = text.partition("$ halfcard inspect gpu1\n")
    assert "pod/nginx created" in told
    assert "card 0  shared  50/100 %" in cards and "team-a/nginx    30 %" in cards and "card 3  free" in cards
    assert f'{names.PLACEMENT}: {{"node":"gpu1","cards":{{"nginx":["0"]}},"by":"extender"}}' in cards


def test_the_demonstration_in_json_has_every_scene() -> None:
    scenes = {scene["file"]: scene for scene in halfcard("demo", "-o", "json").json()}

    assert scenes["nginx.yaml"]["allowed"]
    assert scenes["nginx.yaml"]["patch"]
    assert not scenes["miner.yaml"]["allowed"]
    placed = {file for file, scene in scenes.items() if names.PLACEMENT in scene["record"]}
    assert placed == {"nginx.yaml", "vcuda20.yaml", "notebook.yaml"}
    assert names.QUOTA_TWINS in str(scenes["quota.yaml"]["patch"])


def test_the_version_is_that_of_the_code() -> None:
    assert halfcard("--version").out == f"halfcard {__version__}\n"


def test_webhooks_prints_both_configurations_with_the_ca(tmp_path: Path) -> None:
    ca = tmp_path / "ca.crt"
    ca.write_text("the CA")

    mutating, validating = yaml.safe_load_all(halfcard("webhooks", "--ca", str(ca)).out)

    assert [mutating["kind"], validating["kind"]] == ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]
    bundles = {hook["clientConfig"]["caBundle"] for hook in mutating["webhooks"] + validating["webhooks"]}
    assert bundles == {base64.b64encode(b"the CA").decode()}


def test_mutating_fails_open_and_validating_pods_fails_closed() -> None:
    mutating, validating = yaml.safe_load_all(halfcard("webhooks").out)

    assert {hook["failurePolicy"] for hook in mutating["webhooks"]} == {"Ignore"}
    assert {hook["name"]: hook["failurePolicy"] for hook in validating["webhooks"]} == {
        "validate-pods.halfcard.dev": "Fail",
        "validate-records.halfcard.dev": "Fail",
        "validate-workloads.halfcard.dev": "Ignore",
        "validate-resourceclaims.halfcard.dev": "Fail",
    }


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["review"], ["serve"]])
def test_wrong_arguments_exit_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)

    assert ended.value.code == 2
    assert "usage: halfcard" in capsys.readouterr().err
