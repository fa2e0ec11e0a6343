from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from certs.chains import CONFIGURATIONS, ObjectPath, chains
from certs.lifetimes import KNOWN_AFTER
from certs.objects import TLS_CRT, annotation, written
from certs.reconcile import reconcile
from cli.__main__ import main
from extender.scheduler_api.scheduler_contact import (
    CallerCertificate,
    FailedHandshake,
    HandshakeFailure,
    SchedulerContact,
    write_contact,
)
from halfcard import names
from tests.certs.handshakes import foreign_certificate
from tests.certs.memory_store import MemoryStore, finished
from tests.docs.pages import ROOT, fences
from tests.docs.shell import shows

from .command import too_wide
from .secret_server import cluster_with

ADMISSION, EXTENDER = chains(names.NAMESPACE)
(LEAF,) = ADMISSION.leaves
_NAME: Final = re.compile(r"CA [0-9a-f]{8}")


@dataclass
class Printed:
    code: int
    out: str
    err: str


class Cluster:
    """Certificates that were made two days ago."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.store = MemoryStore()
        self.store.register(b"")
        self.hidden: tuple[ObjectPath, ...] = ()
        self._folder = folder
        self._capture = capture
        self.keep(timedelta(days=-2))

    def keep(self, later: timedelta = timedelta()) -> None:
        for chain in (ADMISSION, EXTENDER):
            finished(reconcile(self.store, chain, lambda: datetime.now(UTC) + later))

    def certs(self, *arguments: str) -> Printed:
        with cluster_with(self.store, self._folder, hidden=self.hidden) as kubeconfig:
            code = main(["certs", *arguments, "--kubeconfig", str(kubeconfig)])
        return Printed(code, *self._capture.readouterr())


def cells(printed: Printed, title: str) -> list[str]:
    (line,) = (each for each in printed.out.splitlines() if each.startswith(f"{title} "))
    return re.split(r"  +", line)[1:]


@pytest.fixture
def cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Cluster:
    return Cluster(tmp_path, capsys)


def test_status_shows_every_object_and_the_next_step_of_each_chain(cluster: Cluster) -> None:
    printed = cluster.certs("status")
    assert (printed.code, printed.err) == (0, "")
    assert too_wide(printed.out) == []
    heads, *lines = printed.out.splitlines()
    assert heads.split() == ["OBJECT", "ENDS", "DAYS", "HOLDS"]
    assert [line.split()[0] for line in lines] == [
        "secret/halfcard-ca",
        "secret/halfcard-admission-tls",
        "validatingwebhookconfiguration/halfcard",
        "mutatingwebhookconfiguration/halfcard",
        "secret/halfcard-extender-ca",
        "secret/halfcard-extender-tls",
        "secret/halfcard-scheduler-tls",
        "admission:",
        "extender:",
    ]
    assert [line.split()[2] for line in lines[:7]] == ["3647", "87", "-", "-", "10947", "87", "3647"]
    assert len(set(_NAME.findall("".join(lines[:4])))) == 1
    assert lines[7].startswith("admission: fine: valid until ")


def test_status_prints_what_the_page_shows(cluster: Cluster) -> None:
    (shown,) = (fence.text for fence in fences(ROOT / "docs" / "certificates.md") if fence.language == "text")
    assert shows(unmade(shown), unmade(cluster.certs("status").out))


def unmade(text: str) -> str:
    """Without what is another one each time."""
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", _NAME.sub("CA", text))


def test_a_rotation_shows_both_cas(cluster: Cluster) -> None:
    assert cluster.certs("rotate", "--authority").code == 0
    cluster.keep(timedelta(seconds=2))
    printed = cluster.certs("status")
    assert printed.code == 0
    assert "admission: fine: a new CA is being distributed; leaves follow at" in printed.out
    assert all(len(_NAME.findall(line)) == 2 for line in printed.out.splitlines() if "configuration/" in line)


def test_certificates_without_a_controller_are_due(cluster: Cluster) -> None:
    cluster.store.delete(LEAF)
    printed = cluster.certs("status")
    assert printed.code == 1
    assert cells(printed, "secret/halfcard-admission-tls") == ["-", "-", "is missing"]
    assert "admission: due: tls.crt is missing; the controller checks every half minute" in printed.out


@pytest.mark.parametrize("contents", [b"garbage", b""])
def test_an_unreadable_certificate_is_shown_as_none(cluster: Cluster, contents: bytes) -> None:
    cluster.store.set_entry(LEAF, TLS_CRT, contents)
    printed = cluster.certs("status")
    assert printed.code == 1 and "no certificate\n" in printed.out


def test_without_the_right_to_read_the_ca_the_rest_is_shown(cluster: Cluster) -> None:
    cluster.hidden = (ADMISSION.authority,)
    printed = cluster.certs("status")
    assert printed.code == 2
    assert cells(printed, "secret/halfcard-ca") == ["-", "-", "cannot be read"]
    assert 'admission: unreadable: reading halfcard-ca: the API server answered 403: secrets "halfcard-ca" is' in (
        printed.out
    )
    assert "extender: fine" in printed.out


def test_a_certificate_of_another_issuer_is_not_a_fault(cluster: Cluster) -> None:
    cluster.store.set_entry(LEAF, TLS_CRT, foreign_certificate())
    cluster.store.register(foreign_certificate())
    printed = cluster.certs("status")
    assert printed.code == 0
    assert "admission: left alone: tls.crt was not issued by Halfcard" in printed.out
    assert "left alone: 1 of its webhooks trust a CA of another issuer" in printed.out


def test_the_json_has_the_same_content(cluster: Cluster) -> None:
    found = json.loads(cluster.certs("status", "-o", "json").out)
    assert found["objects"][1]["object"] == "secret/halfcard-admission-tls"
    assert found["objects"][1]["days_left"] == 87
    assert [(each["chain"], each["state"]) for each in found["chains"]] == [("admission", "fine"), ("extender", "fine")]
    assert found["remarks"] == []


def test_rotate_requests_certificates_which_the_controller_then_issues(cluster: Cluster) -> None:
    before = cluster.store.items[LEAF]["data"]
    printed = cluster.certs("rotate")
    assert (printed.code, printed.out) == (0, "requested new certificates: halfcard-admission-tls\n")
    assert cluster.store.items[LEAF]["data"] == before
    cluster.keep(timedelta(seconds=2))
    assert cluster.store.items[LEAF]["data"] != before


def test_a_new_ca_is_requested_once_however_often_the_controller_runs(cluster: Cluster) -> None:
    assert cluster.certs("rotate", "extender", "--authority").code == 0
    for later in (timedelta(seconds=2), KNOWN_AFTER + timedelta(seconds=3), timedelta(days=1)):
        cluster.keep(later)
    assert len(_NAME.findall(cells(cluster.certs("status"), "secret/halfcard-extender-ca")[-1])) == 2


def test_a_step_that_needs_a_person_is_due(cluster: Cluster) -> None:
    yesterday = timedelta(days=-1)
    cluster.store.annotate(EXTENDER.leaves[0], names.NEW_CA_ASKED, written(datetime.now(UTC) + yesterday))
    for later in (timedelta(seconds=2), 2 * KNOWN_AFTER):
        cluster.keep(yesterday + later)
    printed = cluster.certs("status")
    assert printed.code == 1
    assert "extender: due: an administrator must give the new CA to its clients" in printed.out
    assert cells(printed, "secret/halfcard-scheduler-tls")[-1] != cells(printed, "secret/halfcard-extender-tls")[-1]


def test_the_output_says_how_to_give_the_scheduler_new_files(cluster: Cluster) -> None:
    assert "give the schedulers the new files of halfcard-scheduler-tls" in cluster.certs(
        "rotate", "extender", "--authority"
    ).out.replace("\n  ", " ")


def test_a_dry_run_requests_nothing(cluster: Cluster) -> None:
    printed = cluster.certs("rotate", "--authority", "--dry-run")
    assert printed.code == 0 and printed.out.startswith("would request a new CA in halfcard-ca; ")
    assert not annotation(cluster.store.items[LEAF], names.NEW_CA_ASKED)


def test_without_a_secret_rotate_names_the_deployment_that_creates_it(cluster: Cluster) -> None:
    cluster.store.delete(EXTENDER.leaves[1])
    printed = cluster.certs("rotate", "extender")
    assert printed.code == 2
    assert printed.err == (
        "halfcard certs: halfcard-scheduler-tls is missing; does the Deployment halfcard-certs run?\n"
    )
    assert not annotation(cluster.store.items[EXTENDER.leaves[0]], names.NEW_LEAF_ASKED)


def test_certificates_of_another_issuer_are_not_rotated(cluster: Cluster) -> None:
    cluster.store.set_entry(LEAF, TLS_CRT, foreign_certificate())
    printed = cluster.certs("rotate")
    assert printed.code == 1
    assert "was not issued by Halfcard; its issuer renews it" in printed.err


def test_an_unreachable_cluster_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certs", "status", "--kubeconfig", str(tmp_path / "none")]) == 2
    assert "halfcard certs: " in capsys.readouterr().err


def test_an_absent_configuration_is_shown_as_absent(cluster: Cluster) -> None:
    cluster.store.delete(CONFIGURATIONS[0])
    printed = cluster.certs("status")
    assert printed.code == 0
    assert cells(printed, "validatingwebhookconfiguration/halfcard") == ["-", "-", "is missing"]


# --- the scheduler's copy --------------------------------------------------------------------------------------------

ADDRESS: Final = "10.0.0.7"


def contact(now: datetime, *, ends: timedelta, **failed: datetime) -> SchedulerContact:
    caller = CallerCertificate(now - timedelta(hours=2), now + ends, "CN=kube-scheduler", "1")
    failures: dict[str, FailedHandshake] = {
        HandshakeFailure[each]: FailedHandshake(when, ADDRESS) for each, when in failed.items()
    }
    return SchedulerContact(now - timedelta(hours=2), None, {ADDRESS: caller}, failures)


def status_with(cluster: Cluster, seen: SchedulerContact) -> Printed:
    place = ObjectPath(f"/apis/coordination.k8s.io/v1/namespaces/{names.NAMESPACE}/leases", names.SCHEDULER_CONTACT)
    cluster.store.items[place] = {"metadata": {"annotations": {names.CONTACT: write_contact(seen)}}}
    return cluster.certs("status")


def test_status_shows_when_the_schedulers_copy_ends(cluster: Cluster) -> None:
    now = datetime.now(UTC)
    printed = status_with(cluster, contact(now, ends=timedelta(days=3649, hours=1)))
    assert (printed.code, printed.err) == (0, "")
    assert cells(printed, f"copy at {ADDRESS}")[1:] == ["3649", f"shown at {written(now - timedelta(hours=2))}"]


def test_a_copy_that_ends_soon_is_due_although_the_secret_is_fine(cluster: Cluster) -> None:
    printed = status_with(cluster, contact(datetime.now(UTC), ends=timedelta(days=20)))
    assert printed.code == 1
    assert f"scheduler: due: scheduler at {ADDRESS}: its client certificate ends at" in printed.out
    assert "copy-certificate.sh" in printed.out


def test_a_copy_that_the_extender_refuses_is_due(cluster: Cluster) -> None:
    now = datetime.now(UTC)
    printed = status_with(cluster, contact(now, ends=timedelta(days=3649), EXPIRED=now - timedelta(minutes=1)))
    assert printed.code == 1
    assert f"no handshake with {ADDRESS}: client certificate expired" in " ".join(printed.out.split())


def test_a_program_that_speaks_no_tls_is_no_copy(cluster: Cluster) -> None:
    now = datetime.now(UTC)
    printed = status_with(cluster, contact(now, ends=timedelta(days=3649), PLAIN=now - timedelta(minutes=1)))
    assert printed.code == 0
