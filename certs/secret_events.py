"""Reports changes of certificates in Events at the Secrets, in Halfcard's namespace."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Final

from certs.chains import Chain, ObjectPath
from certs.reconcile import Change, CompletedStep, kind_of
from certs.steps import Publish, RenewAuthority, RenewLeaf, Trust
from halfcard import names
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
    where = secret.collection.rpartition("/")[0]
    try:
        answer = await calls.post(f"{where}/events", _event(secret, done, now))
    except NoAnswerError as error:
        log.warning("event not written", why=str(error))
    else:
        if answer.status != HTTPStatus.CREATED:
            log.warning("event not written", why=f"{answer.status} {answer.message()}")


def _event(secret: ObjectPath, done: CompletedStep, now: datetime) -> bytes:
    namespace = secret.collection.split("/")[4]
    about = {"apiVersion": "v1", "kind": "Secret", "namespace": namespace, "name": secret.name}
    where = "" if done.place == secret else f"{kind_of(done.place)} {done.place.name}: "
    message = once(_REASONS[type(done.step)], f"{where}{done.step.reason}", now)
    source = {"component": names.CERTS_SERVICE}
    return event(about, {"generateName": f"{secret.name}."}, source, message, is_warning=False)
