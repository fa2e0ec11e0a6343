"""Reports changes in Events in Halfcard's namespace: certificates at their Secrets, registrations at the Service."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final

from certs.chain_state import kind_of
from certs.chains import Chain
from certs.reconcile import Change, CompletedStep
from certs.steps import Publish, RenewAuthority, RenewLeaf, Trust
from halfcard import names
from halfcard.api_paths import path_of_events
from halfcard.events import event, once
from kube.api.calls import ApiCalls, NoAnswerError
from serving.log import Log

_REASONS: Final[dict[type[Change], str]] = {
    RenewAuthority: "AuthorityRenewed",
    Trust: "AuthoritiesChanged",
    RenewLeaf: "CertificateRenewed",
    Publish: "AuthoritiesPublished",
}


async def report(calls: ApiCalls, log: Log, chain: Chain, done: CompletedStep, now: datetime) -> None:
    """Writes the Event of a change; a webhook configuration is outside the namespace, so its Secret has the Event."""
    secret = chain.authority if done.place in chain.configurations else done.place
    namespace = secret.collection.split("/")[4]
    where = "" if done.place == secret else f"{kind_of(done.place)} {done.place.name}: "
    content = once(_REASONS[type(done.step)], f"{where}{done.step.reason}", now)
    await _write(calls, log, {"kind": "Secret", "namespace": namespace, "name": secret.name}, content)


async def report_registration(calls: ApiCalls, log: Log, namespace: str, *, message: str, now: datetime) -> None:
    """Writes the Event of webhooks that were registered or repaired."""
    service = {"kind": "Service", "namespace": namespace, "name": names.ADMISSION_SERVICE}
    await _write(calls, log, service, once("WebhooksWritten", message, now))


async def _write(calls: ApiCalls, log: Log, about: Mapping[str, str], content: Mapping[str, Any]) -> None:
    name, source = {"generateName": f"{about['name']}."}, {"component": names.CERTS_SERVICE}
    body = event({"apiVersion": "v1", **about}, name, source, content, is_warning=False)
    try:
        answer = await calls.post(path_of_events(about["namespace"]), body)
    except NoAnswerError as error:
        log.warning("event not written", why=str(error))
    else:
        if answer.status != HTTPStatus.CREATED:
            log.warning("event not written", why=answer.refusal())
