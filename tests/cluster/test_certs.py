"""Certificates on a real API server: created once, repaired after every fault, rotated under load."""

from __future__ import annotations

import base64
import io
import json
import os
import shlex
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from certs import objects
from certs.authority import KeyPair, make_authority, make_leaf
from certs.certificate_checks import certificates
from certs.chain_state import kind_of
from certs.chains import CONFIGURATIONS, Chain, ObjectPath
from certs.lifetimes import AUTHORITY_LIFE, LEAF_LIFE, LeafRules
from certs.objects import CA_CRT, CA_KEY, TLS_CRT, TLS_KEY, entry
from certs.server_names import server_names
from certs.store import JSON_PATCH
from certs.tokens.token_plan import registered_tokens
from certs.tokens.token_rotation import TOKENS, callers_secret
from cli.__main__ import main as halfcard
from devcluster.build.binaries import program_path
from devcluster.cluster import Cluster
from devcluster.control_plane.client import ApiResponse
from halfcard import names
from halfcard.caller_tokens import path_with, read_tokens
from serving.log import utc_now
from tests.builders import pod
from tests.certs.handshakes import foreign_certificate
from tests.deploy.rendered import every
from tests.docs.pages import ROOT, Fence, all_fences
from tests.docs.shell import Shell

from .certified import Certified
from .certified_scheduler import Scheduler
from .certs_process import ADMISSION, EXTENDER
from .certs_service import CertificateControllers, CertifiedInstallation, mounted
from .hammer import Hammer
from .manifests import bad, complete, workload
from .typed import run_commands

_CREATES: Final = int(os.environ.get("HALFCARD_CERTS_CREATES", "1000"))
"""Server-side dry runs, each of which calls the webhook twice; 25000 for a soak."""

_NEVER_SET: Final = threading.Event()
"""Never set; waiting for it with a timeout is a pause that leaves the CPU to others."""

_HTTPS: Final = 443
_AT_ONCE_S: Final = 10.0

(LEAF,) = ADMISSION.leaves
VALIDATING = CONFIGURATIONS[0]
CALLERS: Final = callers_secret(names.NAMESPACE)


@pytest.fixture(scope="module")
def certified() -> Iterator[Certified]:
    """Two controllers that start together on an empty cluster, and a registered webhook with two replicas."""
    with Cluster() as cluster:
        webhook = CertifiedInstallation(cluster)
        controllers = CertificateControllers(cluster)
        controllers.start(2)
        with mounted(cluster, LEAF, webhook.tls), mounted(cluster, CALLERS, webhook.callers):
            cluster.wait_until((webhook.tls / TLS_CRT).exists, what="the Secret to be mounted")
            cluster.wait_until(webhook.caller_tokens.exists, what="the caller tokens to be mounted")
            for _ in range(2):
                webhook.add_replica()
            webhook.register()
            yield Certified(cluster, webhook, controllers)


@pytest.fixture(autouse=True)
def _works_before_and_after(certified: Certified) -> Iterator[None]:
    certified.wait_until_works()
    yield
    certified.wait_until_works()


def test_two_certificate_controllers_on_an_empty_cluster_create_one_ca(certified: Certified) -> None:
    assert_one_ca_was_made(certified)


def assert_one_ca_was_made(certified: Certified) -> None:
    for chain in (ADMISSION, EXTENDER):
        made = [
            line for line in certified.controllers.logs().splitlines() if f'"secret {chain.authority.name}"' in line
        ]
        assert len(made) == 1, made
        bundle = entry(certified.secret(chain.authority), CA_CRT)
        assert bundle and len(certificates(bundle)) == 1
        assert {entry(certified.secret(place), CA_CRT) for place in chain.leaves} == {bundle}
    assert certified.bundles() == {entry(certified.secret(ADMISSION.authority), CA_CRT)}


def test_the_secrets_have_the_documented_names_and_keys(certified: Certified) -> None:
    assert {place.name for chain in (ADMISSION, EXTENDER) for place in (chain.authority, *chain.leaves)} == {
        names.ADMISSION_CA,
        names.ADMISSION_TLS,
        names.EXTENDER_CA,
        names.EXTENDER_TLS,
        names.SCHEDULER_TLS,
    }
    leaf = certified.secret(LEAF)
    assert leaf["type"] == "kubernetes.io/tls" and set(leaf["data"]) == {TLS_CRT, TLS_KEY, CA_CRT}


# --- repair -------------------------------------------------------------------------------------------------------


def delete(place: ObjectPath) -> Callable[[Certified], None]:
    return lambda certified: certified.cluster.request("DELETE", str(place)).must()


def garble(place: ObjectPath, key: str) -> Callable[[Certified], None]:
    return lambda certified: certified.set_entries(place, {key: b"garbage"})


def reissue(rules: LeafRules, age: timedelta = timedelta()) -> Callable[[Certified], None]:
    """Replaces the certificate by one of the current CA with other rules or another age."""

    def change(certified: Certified) -> None:
        authority = certified.secret(ADMISSION.authority)
        pair = KeyPair(entry(authority, CA_CRT) or b"", entry(authority, CA_KEY) or b"")
        made = make_leaf(pair, rules, now=utc_now() - age)
        certified.set_entries(LEAF, {TLS_CRT: made.certificate, TLS_KEY: made.key})

    return change


def mismatch(certified: Certified) -> None:
    other = make_leaf(make_authority(ADMISSION.rules, now=utc_now()), ADMISSION.rules.leaves[0], now=utc_now())
    certified.set_entries(LEAF, {TLS_KEY: other.key})


def other_authority(age: timedelta = timedelta()) -> Callable[[Certified], None]:
    """Replaces the CA by one that no client trusts."""

    def change(certified: Certified) -> None:
        made = make_authority(ADMISSION.rules, now=utc_now() - age)
        certified.set_entries(ADMISSION.authority, {CA_CRT: made.certificate, CA_KEY: made.key})

    return change


def trust_another_ca(certified: Certified) -> None:
    more = make_authority(ADMISSION.rules, now=utc_now()).certificate
    certified.set_entries(LEAF, {CA_CRT: (entry(certified.secret(LEAF), CA_CRT) or b"") + more})


HARMLESS: Final = {
    **{f"{place.name} is deleted": delete(place) for place in (ADMISSION.authority, LEAF)},
    "the CA is garbage": garble(ADMISSION.authority, CA_CRT),
    "the CA's key is garbage": garble(ADMISSION.authority, CA_KEY),
    "the CA is another one": other_authority(),
    "the CA has expired": other_authority(AUTHORITY_LIFE + timedelta(days=1)),
    "the certificate is garbage": garble(LEAF, TLS_CRT),
    "the key is garbage": garble(LEAF, TLS_KEY),
    "the key belongs to another certificate": mismatch,
    "the certificate has expired": reissue(ADMISSION.rules.leaves[0], timedelta(days=91)),
    "ca.crt beside the certificate has one CA too many": trust_another_ca,
}


@pytest.mark.parametrize("case", HARMLESS)
def test_a_spoiled_secret_is_repaired_and_no_call_fails(certified: Certified, case: str) -> None:
    before = certified.secret(LEAF)["metadata"]["resourceVersion"]
    with Hammer(certified.create) as hammer:
        hammer.wait_for(5)
        HARMLESS[case](certified)
        certified.controllers.wait_for("until")
        hammer.wait_for(20)
    assert [answer.body for answer in hammer.answers if not answer.ok] == []
    assert before != certified.cluster.request("GET", str(LEAF)).must()["metadata"]["resourceVersion"]


def test_a_certificate_for_other_names_is_replaced(certified: Certified) -> None:
    reissue(LeafRules(server_names(["other.svc"])))(certified)
    certified.wait_until_works()


def test_a_certificate_that_expired_during_a_suspend_is_replaced_after_resume(
    certified: Certified,
) -> None:
    for controller in certified.controllers.replicas:
        controller.program.pause()
    reissue(ADMISSION.rules.leaves[0], LEAF_LIFE - timedelta(seconds=2))(certified)
    (ending,) = certificates(entry(certified.secret(LEAF), TLS_CRT))
    certified.cluster.wait_until(lambda: utc_now() > ending.not_valid_after_utc, what="the certificate to end")
    for controller in certified.controllers.replicas:
        controller.program.resume()
    certified.controllers.wait_for("valid until")
    assert "the leaf expired at" in certified.controllers.logs()


def test_an_emptied_ca_bundle_is_filled_again_at_once(certified: Certified) -> None:
    """The shipped program reacts to the watch; it does not wait for its periodic check every 30 s."""
    certified.controllers.kill_all()
    certified.controllers.start(1, fast=False)
    for place in CONFIGURATIONS:
        at = range(len(certified.secret(place)["webhooks"]))
        certified.patch(place, [{"op": "remove", "path": f"/webhooks/{each}/clientConfig/caBundle"} for each in at])
        certified.cluster.wait_until(
            lambda: b"" not in certified.bundles(), what="the bundles to be filled", seconds=10
        )
    assert "may be out of date" not in certified.controllers.logs()
    certified.controllers.kill_all()
    certified.controllers.start(2)


def test_webhooks_are_registered_once_a_replica_is_ready_and_refuse_nothing_before(certified: Certified) -> None:
    for replica in certified.webhook.replicas:
        certified.cluster.withdraw(names.NAMESPACE, names.ADMISSION_SERVICE, replica.port)
    for place in CONFIGURATIONS:
        certified.patch(place, [{"op": "remove", "path": "/webhooks"}])
    wait_for_checks(certified)
    assert [certified.secret(place).get("webhooks") for place in CONFIGURATIONS] == [None, None]
    certified.cluster.wait_until(
        lambda: certified.webhook.create("default", bad("early"), dry_run=True).ok, what="no call"
    )
    for replica in certified.controllers.replicas:
        assert "no replica of the webhook is ready" in replica.status(names.READY_PATH)[1]
    for replica in certified.webhook.replicas:
        certified.cluster.expose(names.NAMESPACE, names.ADMISSION_SERVICE, _HTTPS, replica.port)
    certified.cluster.wait_until(lambda: refused(certified), what="a bad pod to be refused", seconds=_AT_ONCE_S)
    certified.cluster.wait_until(
        lambda: all(replica.ready() for replica in certified.controllers.replicas), what="controllers to be ready"
    )


def refused(certified: Certified) -> bool:
    answer = certified.webhook.create("default", bad("late"), dry_run=True)
    return answer.status == 403 and "HC002" in str(answer.body)


def test_an_edited_webhook_is_repaired_at_once_and_reported(certified: Certified) -> None:
    certified.patch(VALIDATING, [{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}])
    certified.cluster.wait_until(
        lambda: certified.secret(VALIDATING)["webhooks"][0]["failurePolicy"] == "Fail",
        what="the failure policy to be repaired",
        seconds=_AT_ONCE_S,
    )
    repaired = "repaired: failurePolicy of validate-pods.halfcard.dev"
    assert repaired in certified.controllers.logs()
    events = f"/api/v1/namespaces/{names.NAMESPACE}/events"
    certified.cluster.wait_until(
        lambda: repaired in str(certified.cluster.request("GET", events).must()["items"]), what="an Event"
    )


def wait_for_checks(certified: Certified) -> None:
    before = last_checks(certified)
    certified.cluster.wait_until(
        lambda: all(now > then + 3 for now, then in zip(last_checks(certified), before, strict=True)),
        what="three more checks",
    )


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=kind_of)
def test_a_deleted_webhook_configuration_is_not_recreated_and_is_filled_once_restored(
    certified: Certified, configuration: ObjectPath
) -> None:
    certified.cluster.request("DELETE", str(configuration)).must()
    wait_for_checks(certified)
    assert certified.cluster.request("GET", str(configuration)).status == 404
    certified.webhook.register()
    assert b"" not in certified.bundles()


def last_checks(certified: Certified) -> list[float]:
    metrics = [replica.status(names.METRICS_PATH)[1].splitlines() for replica in certified.controllers.replicas]
    wanted = 'halfcard_certs_last_look_timestamp_seconds{chain="admission"} '
    return [float(line.removeprefix(wanted)) for lines in metrics for line in lines if line.startswith(wanted)]


def test_a_foreign_ca_is_left_alone_and_reported(certified: Certified) -> None:
    foreign = base64.b64encode(foreign_certificate()).decode()
    own = certified.secret(VALIDATING)["webhooks"][0]["clientConfig"]["caBundle"]
    entry_of_first = {"op": "replace", "path": "/webhooks/0/clientConfig/caBundle"}
    certified.patch(VALIDATING, [{**entry_of_first, "value": foreign}])
    certified.cluster.wait_until(
        lambda: "1 of its webhooks trust a CA of another issuer" in certified.controllers.logs(),
        what="the log to say so",
    )
    assert certified.secret(VALIDATING)["webhooks"][0]["clientConfig"]["caBundle"] == foreign
    do_as_the_doctor_says(certified, "certificate-mismatch")
    certified.cluster.wait_until(
        lambda: certified.secret(VALIDATING)["webhooks"][0]["clientConfig"].get("caBundle") == own,
        what="the controller to fill the caBundle that was emptied",
    )


def do_as_the_doctor_says(certified: Certified, check: str) -> None:
    """Runs the command of a finding; no pod of the controller's Deployment runs here, which may explain the finding."""
    item = workload("Deployment", names.CERTS_SERVICE, complete(pod("certs").container()))
    item["spec"]["template"]["spec"]["serviceAccountName"] = names.CERTS_SERVICE
    path = f"/apis/apps/v1/namespaces/{names.NAMESPACE}/deployments"
    certified.cluster.request("POST", path, item).must()
    out = io.StringIO()
    with redirect_stdout(out):
        halfcard(["doctor", "--kubeconfig", str(certified.cluster.admin.kubeconfig), "-o", "json"])
    report = json.loads(out.getvalue())
    (found,) = [each for each in report["findings"] + report["consequences"] if each["check"] == check]
    certified.cluster.request("DELETE", f"{path}/{names.CERTS_SERVICE}").must()
    (_, *words) = shlex.split(found["command"])
    done = certified.cluster.kubectl(*words)
    assert done.code == 0, done.stderr


def test_the_extenders_secrets_are_repaired_too(certified: Certified) -> None:
    ca = entry(certified.secret(EXTENDER.authority), CA_CRT)
    for place in EXTENDER.leaves:
        delete(place)(certified)
    certified.controllers.wait_for("valid until", EXTENDER)
    assert entry(certified.secret(EXTENDER.authority), CA_CRT) == ca


def test_a_ca_bundle_is_not_written_over_a_newer_version(certified: Certified) -> None:
    old = certified.secret(VALIDATING)
    certified.patch(VALIDATING, [{"op": "add", "path": "/metadata/labels", "value": {"newer": "yes"}}])
    answer = certified.cluster.client.request(
        certified.cluster.admin,
        "PATCH",
        str(VALIDATING),
        json.loads(objects.bundle_patch(old, foreign_certificate())),
        content_type=JSON_PATCH,
    )
    assert answer.status == 409, answer.body


def test_two_certificate_controllers_fill_the_charts_empty_secrets_with_one_ca(certified: Certified) -> None:
    certified.controllers.kill_all()
    for place in (*CONFIGURATIONS, *(place for chain in (ADMISSION, EXTENDER) for place in secrets_of(chain))):
        delete(place)(certified)
    empty = every("Secret")
    for chain in (ADMISSION, EXTENDER):
        for place in secrets_of(chain):
            assert "data" not in empty[place.name]
            certified.cluster.request("POST", place.collection, empty[place.name]).must()
    certified.controllers.start(2)
    certified.webhook.register()
    assert_one_ca_was_made(certified)


def secrets_of(chain: Chain) -> tuple[ObjectPath, ...]:
    return (chain.authority, *chain.leaves)


# --- rights -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "what", "where"),
    [
        *((verb, "secrets", names.NAMESPACE) for verb in ("list", "watch", "patch", "delete")),
        ("get", "secrets/other", names.NAMESPACE),
        ("get", f"secrets/{names.ADMISSION_CA}", names.KUBE_SYSTEM),
        ("create", "secrets", names.KUBE_SYSTEM),
        *((verb, "validatingwebhookconfigurations/halfcard", "") for verb in ("create", "update", "delete")),
        ("patch", "mutatingwebhookconfigurations/other", ""),
        ("*", "*", ""),
    ],
)
def test_the_certificate_controller_has_no_other_rights(certified: Certified, verb: str, what: str, where: str) -> None:
    place = (f"--namespace={where}",) if where else ("--all-namespaces",)
    done = certified.cluster.kubectl("auth", "can-i", verb, what, *place, user=certified.controllers.account)
    assert done.stdout.strip() == "no"


# --- rotation -----------------------------------------------------------------------------------------------------


@pytest.mark.timeout(240 + _CREATES / 20)
def test_caller_tokens_are_replaced_under_load_without_a_failed_call(certified: Certified) -> None:
    """Rotates until the wanted number of creates is reached; the controllers are killed during each rotation."""
    seen: set[str] = set()
    with Hammer(certified.create) as creates:
        while len(creates.answers) < _CREATES or len(seen) < 2:
            wait_for_another_token(certified)
            certified.controllers.kill_all()
            certified.controllers.start(2)
            seen |= tokens_in_use(certified)
    assert [answer.body for answer in creates.answers if not answer.ok] == []
    logs = certified.controllers.logs() + "".join(each.program.log.read_text() for each in certified.webhook.replicas)
    assert not any(token in logs for token in seen)
    sys.stderr.write(f"{len(seen)} caller tokens: {len(creates.answers)} creates, none failed\n")


def wait_for_another_token(certified: Certified) -> None:
    before = tokens_in_use(certified)
    certified.cluster.wait_until(lambda: tokens_in_use(certified) != before, what="another caller token", seconds=60)


def tokens_in_use(certified: Certified) -> frozenset[str]:
    return registered_tokens(map(certified.secret, CONFIGURATIONS))


@pytest.mark.parametrize("token", ["", "f" * 64])
def test_a_call_that_the_api_server_did_not_make_is_refused(certified: Certified, token: str) -> None:
    """As from a pod: it reaches the port, knows the CA and the paths, and has no caller token."""
    replica = certified.webhook.replicas[0]
    trust = ssl.create_default_context(cadata=objects.bundles(certified.secret(VALIDATING))[0].decode())
    name = f"{names.ADMISSION_SERVICE}.{names.NAMESPACE}.svc"
    head = f"POST {path_with(token, names.VALIDATE_PODS_PATH)} HTTP/1.1\r\nHost: {name}\r\nContent-Length: 9\r\n\r\n"
    with (
        socket.create_connection((replica.host, replica.port), timeout=5) as plain,
        trust.wrap_socket(plain, server_hostname=name) as secured,
    ):
        secured.sendall(head.encode())
        assert secured.recv(100).startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize("role", ["view", "edit", "admin"])
def test_no_role_for_tenants_can_read_a_caller_token(certified: Certified, role: str) -> None:
    certified.cluster.kubectl(
        "-n", "default", "create", "rolebinding", f"tenant-{role}", f"--clusterrole={role}", "--user=eve"
    )
    for what in (
        f"secrets/{CALLERS.name}",
        *(f"{place.collection.rpartition('/')[2]}/halfcard" for place in CONFIGURATIONS),
    ):
        done = certified.cluster.kubectl("auth", "can-i", "get", what, f"--namespace={names.NAMESPACE}", "--as=eve")
        assert done.stdout.strip() == "no", what


def test_a_deleted_secret_of_caller_tokens_is_made_again_from_what_is_in_use(certified: Certified) -> None:
    used = tokens_in_use(certified)
    delete(CALLERS)(certified)
    certified.cluster.wait_until(
        lambda: certified.cluster.request("GET", str(CALLERS)).ok, what="the Secret to be made again"
    )
    assert used & {*read_tokens(entry(certified.secret(CALLERS), TOKENS) or b"")}


@pytest.mark.timeout(120 + _CREATES / 20)
def test_a_rotation_under_load_fails_no_call_while_controllers_are_killed(certified: Certified) -> None:
    """Rotates until the wanted number of creates is reached."""
    rotations, before = 0, certified.webhook.calls()
    with Hammer(certified.create) as creates, Hammer(lambda: connect_as_api_server(certified)) as handshakes:
        while len(creates.answers) < _CREATES:
            replace_everything(certified)
            creates.wait_for(100)
            rotations += 1
    for hammer in (creates, handshakes):
        assert [answer.body for answer in hammer.answers if not answer.ok] == []
    made, calls = len(creates.answers), certified.webhook.calls() - before
    assert calls >= 2 * made, "each create calls the webhook twice"
    shaken = len(handshakes.answers) * len(certified.webhook.replicas)
    sys.stderr.write(f"{rotations} rotations: {made} creates, {calls} calls, {shaken} new handshakes, none failed\n")


def replace_everything(certified: Certified) -> None:
    before = entry(certified.secret(ADMISSION.authority), CA_CRT)
    rotate(certified, "--authority")
    certified.cluster.wait_until(
        lambda: entry(certified.secret(ADMISSION.authority), CA_CRT) != before, what="the new CA"
    )
    certified.controllers.kill_all()
    certified.controllers.start(2)
    certified.controllers.wait_for("valid until")
    rotate(certified)
    after = certificates(entry(certified.secret(ADMISSION.authority), CA_CRT))
    assert len(after) == 1 and after != certificates(before)


def rotate(certified: Certified, *arguments: str) -> None:
    assert halfcard(["certs", "rotate", *arguments, "--kubeconfig", str(certified.cluster.admin.kubeconfig)]) == 0


def connect_as_api_server(certified: Certified) -> ApiResponse:
    """Opens a TLS connection to each replica with the current caBundle, as an API server does; five times a second."""
    _NEVER_SET.wait(0.2)
    trust = ssl.create_default_context(cadata=objects.bundles(certified.secret(VALIDATING))[0].decode())
    name = f"{names.ADMISSION_SERVICE}.{names.NAMESPACE}.svc"
    try:
        for replica in certified.webhook.replicas:
            with socket.create_connection((replica.host, replica.port), timeout=5) as plain:
                trust.wrap_socket(plain, server_hostname=name).close()
    except OSError as error:
        return ApiResponse(0, str(error))
    return ApiResponse(200, "")


NEW_EXTENDER_CA: Final[dict[str, Callable[[Certified], None]]] = {
    "an administrator rotates it": lambda certified: rotate(certified, "extender", "--authority"),
    "the old one is deleted": delete(EXTENDER.authority),
    "the old one is garbage": garble(EXTENDER.authority, CA_CRT),
}


@pytest.mark.parametrize("why", NEW_EXTENDER_CA)
def test_the_extender_keeps_its_certificate_until_the_scheduler_trusts_the_new_ca(
    certified: Certified, tmp_path: Path, why: str
) -> None:
    server, client = EXTENDER.leaves
    with mounted(certified.cluster, server, tmp_path):
        certified.cluster.wait_until((tmp_path / TLS_CRT).exists, what="the Secret to be mounted")
        scheduler = Scheduler(certified, tmp_path)
        assert "halfcard_served_certificate_days_left 89.9" in scheduler.extender_metrics()
        shown = entry(certified.secret(server), TLS_CRT)
        with Hammer(scheduler.call) as hammer:
            NEW_EXTENDER_CA[why](certified)
            certified.controllers.wait_for("an administrator must", EXTENDER)
            assert len(certificates(entry(certified.secret(client), CA_CRT))) == 2
            assert entry(certified.secret(server), TLS_CRT) == shown
            certified.cluster.wait_until(
                lambda: reports_required_action(certified), what="the metric to report the required action"
            )
            hammer.wait_for(20)
            scheduler.restart()
            rotate(certified, "extender")
            certified.controllers.wait_for("valid until", EXTENDER)
            hammer.wait_for(20)
    assert [answer.body for answer in hammer.answers if not answer.ok] == []
    assert len(certificates(entry(certified.secret(EXTENDER.authority), CA_CRT))) == 1


def reports_required_action(certified: Certified) -> bool:
    metrics = [replica.status(names.METRICS_PATH)[1] for replica in certified.controllers.replicas]
    return all('halfcard_certs_due{chain="extender"} 1.0' in each for each in metrics)


# --- commands of administrators ------------------------------------------------------------------------------------


def test_certs_status_shows_healthy_certificates_and_exits_0(
    certified: Certified, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["certs", "status", "--kubeconfig", str(certified.cluster.admin.kubeconfig)]
    assert halfcard(arguments) == 0
    printed = capsys.readouterr().out
    assert "secret/halfcard-ca" in printed and "admission: fine: valid until" in printed
    assert halfcard([*arguments, "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["state"] for each in found["chains"]] == ["fine", "fine"]


def test_controllers_and_servers_export_the_days_left_of_certificates(certified: Certified) -> None:
    for replica in certified.controllers.replicas:
        metrics = replica.status(names.METRICS_PATH)[1]
        assert f'halfcard_certs_days_left{{certificate="{names.ADMISSION_TLS}"}} 89.9' in metrics
    for replica in certified.webhook.replicas:
        assert "halfcard_served_certificate_days_left 89.9" in replica.status(names.METRICS_PATH)[1]


def test_the_script_for_cron_copies_the_secret_of_the_scheduler(certified: Certified, tmp_path: Path) -> None:
    shell, copies = Shell(tmp_path), tmp_path / "copies"
    shell.program("kubectl", f'exec {program_path("kubectl")} "$@"')
    script = ROOT / "deploy" / "scheduler" / "copy-certificate.sh"
    done = shell.run(f"KUBECONFIG={certified.cluster.admin.kubeconfig} {script} {copies}")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    secret = certified.secret(EXTENDER.leaves[1])
    kept = {name: entry(secret, name) for name in (CA_CRT, TLS_CRT, TLS_KEY)}
    assert {path.name: path.read_bytes() for path in copies.iterdir()} == kept


RUNBOOKS: Final = [fence for fence in all_fences("bash") if fence.page.name == "certificates.md"]


@pytest.mark.parametrize("fence", RUNBOOKS, ids=str)
def test_a_runbook_works(certified: Certified, fence: Fence, tmp_path: Path) -> None:
    run_commands(certified.cluster, fence, tmp_path)
    certified.wait_until_works()


def test_every_runbook_is_tested() -> None:
    assert len(RUNBOOKS) == 6
