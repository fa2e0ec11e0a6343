from __future__ import annotations

import asyncio
import base64
import io
import itertools
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jsonpatch
import pytest
from prometheus_client import CollectorRegistry

from admission.endpoint import admission_app
from admission.entry.body_bounds import MAX_BODY_BYTES
from admission.gates import Gate
from admission.metrics import WebhookMetrics
from admission.policy import AdmissionPolicy
from admission.verdict import ALLOWED, Verdict
from admission.writes import Write
from halfcard import names
from halfcard.cluster_view import NOTHING_KNOWN, ClusterView
from serving.log import Log
from tests.builders import Json, gpu, pod_of

from .asgi import JSON, Answer, ask, hung_up, hung_up_after
from .judging import CORE
from .test_wire import BROKEN, review

PODS = names.MUTATE_PODS_PATH


def known() -> ClusterView:
    return NOTHING_KNOWN


def broken_cluster() -> ClusterView:
    raise RuntimeError("secret of the house")


@dataclass
class Webhook:
    """The real application, with its log and its metrics."""

    cluster: Any = known
    gates: Mapping[str, Gate] = field(default_factory=dict)
    said: io.StringIO = field(default_factory=io.StringIO)
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    def __post_init__(self) -> None:
        self.log = Log(stream=self.said)
        self.app = admission_app(
            policy=AdmissionPolicy(),
            cluster=self.cluster,
            metrics=WebhookMetrics(self.registry),
            log=self.log,
            gates=self.gates,
        )

    def ask(self, body: Any, path: str = PODS, **request: Any) -> Answer:
        return ask(self.app, path, body, **request)

    def text(self) -> str:
        self.log.flush()
        return self.said.getvalue()

    def lines(self) -> list[Json]:
        return [json.loads(line) for line in self.text().splitlines()]

    def sample(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)


@pytest.fixture
def webhook() -> Webhook:
    return Webhook()


def body(obj: Any = None, **request: Any) -> bytes:
    subject = pod_of(gpu("0.3")) if obj is None else obj
    return json.dumps(
        review(operation="CREATE", kind={"kind": "Pod"}, namespace="a", name="p", object=subject) | request
    ).encode()


# --- answers ------------------------------------------------------------------------------------------------------


def test_a_review_is_answered_with_a_patch_that_applies(webhook: Webhook) -> None:
    answer = webhook.ask(body())
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert int(answer.headers["content-length"]) == len(answer.body)
    response = json.loads(answer.body)["response"]
    assert (response["uid"], response["allowed"]) == ("705ab4f5", True)
    after = jsonpatch.apply_patch(pod_of(gpu("0.3")), json.loads(base64.b64decode(response["patch"])))
    assert after["spec"]["containers"][0]["resources"]["limits"][CORE] == "30"


@pytest.mark.parametrize(
    ("path", "kind", "obj"),
    [
        (names.MUTATE_PODS_PATH, "Pod", pod_of(gpu("1.5"))),
        (names.VALIDATE_PODS_PATH, "Pod", pod_of(gpu("1.5"))),
        (names.MUTATE_WORKLOADS_PATH, "Job", {"spec": {"template": pod_of(gpu("1.5"))}}),
        (names.VALIDATE_WORKLOADS_PATH, "Job", {"spec": {"template": pod_of(gpu("1.5"))}}),
        (names.MUTATE_QUOTAS_PATH, "ResourceQuota", {"spec": {"hard": {f"limits.{CORE}": "0.305"}}}),
    ],
)
def test_every_path_refuses_a_wrong_object(webhook: Webhook, path: str, kind: str, obj: Json) -> None:
    wrong = json.dumps(review(operation="CREATE", kind={"kind": kind}, namespace="a", object=obj)).encode()
    answer = webhook.ask(wrong, path)
    response = json.loads(answer.body)["response"]
    assert (answer.status, response["allowed"], response["status"]["code"]) == (200, False, 403)
    assert (webhook.lines()[0]["webhook"], webhook.lines()[0]["allowed"]) == (path, False)


async def cancelled_gate(_write: Write, _verdict: Verdict, until: float) -> Verdict:
    async with asyncio.timeout_at(until):
        await asyncio.Event().wait()
    return ALLOWED


def test_a_gate_is_cancelled_when_the_caller_hangs_up_before_the_answer() -> None:
    answer = hung_up_after(Webhook(gates={PODS: cancelled_gate}).app, PODS, body())
    assert answer.status == 400 and b"disconnected before the answer" in answer.body


def test_a_gate_may_wait_for_most_of_the_time_that_the_api_server_waits() -> None:
    left: list[float] = []

    async def gate(_write: Write, verdict: Verdict, until: float) -> Verdict:
        left.append(until - asyncio.get_running_loop().time())
        return verdict

    Webhook(gates={PODS: gate}).ask(body(), query=b"timeout=5s")
    assert left == [pytest.approx(4.0, abs=0.5)]


# --- the caller's mistakes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_another_method_is_405_and_the_answer_names_the_right_one(webhook: Webhook, method: str) -> None:
    answer = webhook.ask(b"", method=method)
    assert (answer.status, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([JSON], 200),
        ([("content-type", "application/json; charset=utf-8")], 200),
        ([("content-type", "Application/JSON ;charset=UTF-8")], 200),
        ([("content-type", "text/plain")], 415),
        ([("content-type", "application/jsonp")], 415),
        ([("content-type", "")], 415),
        ([("content-type", "\xff\x00")], 415),
        ([("accept", "application/json")], 415),
        ([], 415),
    ],
)
def test_another_content_type_is_415(webhook: Webhook, headers: list[tuple[str, str]], status: int) -> None:
    assert webhook.ask(body(), headers=headers).status == status


@pytest.mark.parametrize("broken", [broken for _, broken in BROKEN], ids=[name for name, _ in BROKEN])
def test_a_body_that_is_not_a_review_is_400_with_one_short_sentence_at_once(webhook: Webhook, broken: bytes) -> None:
    start = time.process_time()
    answer = webhook.ask(broken)
    assert time.process_time() - start < 0.5  # a quadratic step would take many times as long
    assert answer.status == 400
    assert answer.headers["content-type"].startswith("text/plain")
    text = answer.body.decode()
    assert text.endswith("\n")
    assert text[:-1].isprintable()
    assert 10 < len(text) < 500
    assert webhook.lines()[0]["status"] == 400
    assert webhook.sample("halfcard_admission_http_errors_total", status="400") == 1


def test_an_object_of_the_wrong_shape_is_400_and_says_where(webhook: Webhook) -> None:
    answer = webhook.ask(body({"spec": {"containers": 5}}))
    assert answer.status == 400
    assert b"spec.containers" in answer.body


def test_a_long_key_is_not_echoed_whole(webhook: Webhook) -> None:
    key = b"k" * 100_000
    answer = webhook.ask(b'{"%s":1,"%s":2}' % (key, key))
    assert answer.status == 400
    assert len(answer.body) < 500
    assert len(webhook.text()) < 1000


def test_a_caller_that_disconnects_is_not_logged_as_a_bug(webhook: Webhook) -> None:
    assert hung_up(webhook.app, PODS).status == 400


def test_an_unknown_path_is_404(webhook: Webhook) -> None:
    assert webhook.ask(body(), "/mutate/everything").status == 404


# --- size and time ------------------------------------------------------------------------------------------------


def padded(size: int) -> bytes:
    """An update, which may be the largest."""
    plain = body(operation="UPDATE", oldObject=pod_of(gpu("0.3"))).replace(b'": "UPDATE"', b'":"UPDATE"')
    return plain + b" " * (size - len(plain))


def test_the_largest_body_is_read_in_parts(webhook: Webhook) -> None:
    whole = padded(MAX_BODY_BYTES)
    parts = [whole[start : start + 2**20] for start in range(0, len(whole), 2**20)]
    assert webhook.ask(parts).status == 200


def test_a_larger_body_is_413_whether_whole_in_parts_or_announced(webhook: Webhook) -> None:
    whole = padded(MAX_BODY_BYTES + 1)
    assert webhook.ask(whole).status == 413
    assert webhook.ask([whole[:-1], whole[-1:]]).status == 413
    announced = [JSON, ("content-length", str(len(whole)))]
    assert webhook.ask([None], headers=announced).status == 413
    assert webhook.ask([None], headers=[JSON, ("content-length", "9" * 30)]).status == 413


def test_a_body_that_never_ends_is_not_stored(webhook: Webhook) -> None:
    assert webhook.ask(itertools.repeat(b" " * 2**20)).status == 413
    assert webhook.sample("halfcard_admission_http_errors_total", status="413") == 1


@pytest.mark.parametrize("parts", [[None], [b"{", None]])
def test_a_body_that_stops_arriving_is_abandoned_when_the_caller_times_out(
    webhook: Webhook, parts: list[bytes | None]
) -> None:
    answer = webhook.ask(parts, query=b"timeout=0.05s")
    assert answer.status == 408
    assert b"0.05 s" in answer.body


@pytest.mark.parametrize(
    "query", [b"", b"timeout=10s", b"timeout=soon", b"a=b&timeout=1s", b"\xff", b"timeout=99999999s"]
)
def test_the_deadline_does_not_affect_a_complete_body(webhook: Webhook, query: bytes) -> None:
    assert webhook.ask(body(), query=query).status == 200


def test_a_body_that_is_too_dense_is_413_before_it_is_parsed(webhook: Webhook) -> None:
    answer = webhook.ask(b"[" + b"[]," * 2**20 + b"1]")
    assert (answer.status, b"values" in answer.body) == (413, True)


def test_the_place_of_a_problem_is_escaped_and_bounded_where_it_is_quoted(webhook: Webhook) -> None:
    """A key of an annotation is a caller's text until the API server has validated it, which is later."""
    forged = f"{names.PLACEMENT}\n\x1b[2J" + "x" * 5000
    answer = webhook.ask(body({**pod_of(gpu("0.3")), "metadata": {"annotations": {forged: "{}"}}}))
    (cause,) = json.loads(answer.body)["response"]["status"]["details"]["causes"]
    assert cause["field"].isprintable() and len(cause["field"]) <= 160
    assert len(answer.body) < 3000


# --- our own bugs -------------------------------------------------------------------------------------------------


def test_our_own_bug_is_500_with_a_reference_that_the_log_explains() -> None:
    webhook = Webhook(cluster=broken_cluster)
    answer = webhook.ask(body())
    assert answer.status == 500
    (line,) = webhook.lines()
    assert (line["level"], line["event"]) == ("error", "bug")
    assert line["reference"] in answer.body.decode()
    assert "RuntimeError" in line["trace"]
    assert "broken_cluster" in line["trace"]
    for inside in (b"Traceback", b"RuntimeError", b"secret", b".py"):
        assert inside not in answer.body
    assert webhook.sample("halfcard_admission_http_errors_total", status="500") == 1
    assert webhook.sample("halfcard_admission_in_flight") == 0


def test_every_bug_has_its_own_reference() -> None:
    webhook = Webhook(cluster=broken_cluster)
    assert webhook.ask(body()).body != webhook.ask(body()).body


# --- what is written down -----------------------------------------------------------------------------------------


def test_a_decision_is_one_line_with_names_and_codes_and_no_values(webhook: Webhook) -> None:
    env = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "s3cret"}, {"name": "TOKEN", "value": "s3cret"}]
    webhook.ask(body(pod_of({**gpu("1.5"), "env": env})))
    (line,) = webhook.lines()
    assert "s3cret" not in webhook.text()
    assert {key: line[key] for key in ("webhook", "uid", "operation", "kind", "namespace", "name", "allowed")} == {
        "webhook": PODS,
        "uid": "705ab4f5",
        "operation": "CREATE",
        "kind": "Pod",
        "namespace": "a",
        "name": "p",
        "allowed": False,
    }
    assert sorted(line["codes"]) == ["HC002", "HC021"]


def test_decisions_are_counted_by_webhook_verdict_and_code(webhook: Webhook) -> None:
    def count(verdict: str, code: str = "") -> float | None:
        return webhook.sample("halfcard_admission_decisions_total", webhook=PODS, verdict=verdict, code=code)

    webhook.ask(body())
    webhook.ask(body(pod_of()))
    webhook.ask(body(pod_of(gpu("1.5"))))
    assert (count("patched"), count("allowed"), count("denied", "HC002")) == (1, 1, 1)
    assert webhook.sample("halfcard_admission_decision_seconds_count", webhook=PODS) == 3
    assert webhook.sample("halfcard_admission_in_flight") == 0


def test_names_of_any_length_make_short_log_lines(webhook: Webhook) -> None:
    assert webhook.ask(body(name="x" * 10_000, uid="u" * 10_000)).status == 200
    (line,) = webhook.lines()
    assert len(json.dumps(line)) < 1000
