"""ResourceQuotas that Kubernetes accepted and never counts are made to count, as our webhook does with new ones.

The law: a repair lands on the very version that was looked at, or not at all.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final, NamedTuple

import msgspec

from halfcard import names
from halfcard.dialects import Dialects
from halfcard.native_quotas import ResourceQuota
from halfcard.quota_twins import Settled, settle, unreadable

from .calls import ApiCalls, NoAnswerError
from .native_quotas import path_of

_DRY: Final = "?dryRun=All"


class Repair(NamedTuple):
    """What became of one quota.

    Attributes:
        done: what was changed, in words; as a rehearsal, what would be.
        why_not: why it still counts nothing; empty where it counts now.
    """

    title: str
    done: tuple[str, ...] = ()
    why_not: str = ""


async def repair(calls: ApiCalls, quota: ResourceQuota, dialects: Dialects, *, rehearse: bool = False) -> Repair:
    """A rehearsal goes through everything but the store: rights, webhooks and all."""
    if problems := unreadable(quota, dialects):
        return Repair(quota.title, why_not=" | ".join(map(str, problems)))
    settled = settle(quota, dialects)
    path = path_of(quota.meta.namespace or "", quota.meta.name or "") + (_DRY if rehearse else "")
    try:
        answer = await calls.patch(path, _patch(quota, settled))
    except NoAnswerError as error:
        return Repair(quota.title, why_not=f"it may or may not count now: {error}")
    if answer.status == HTTPStatus.CONFLICT:
        return Repair(quota.title, why_not="somebody else has changed it meanwhile: try again")
    if answer.status != HTTPStatus.OK:
        return Repair(quota.title, why_not=f"the API server answered {answer.status}: {answer.message()}")
    return Repair(quota.title, settled.notes)


def _patch(quota: ResourceQuota, settled: Settled) -> bytes:
    hard = {str(change.pointer[-1]): change.value for change in settled.changes}
    marks = {"annotations": {names.QUOTA_TWINS: settled.marks}}
    return msgspec.json.encode(
        {"metadata": {"resourceVersion": quota.meta.resource_version, **marks}, "spec": {"hard": hard}}
    )
