"""Makes ResourceQuotas count that Kubernetes accepted and never counts, like our webhook does with new ones.

Invariant: a change replaces exactly the version that was read, or nothing.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final, NamedTuple

import msgspec

from halfcard import names
from halfcard.dialects import Dialects
from halfcard.quota.native_quota import ResourceQuota
from halfcard.quota.requests_twin import TwinnedQuota, reverted, settle, unreadable

from ..api.calls import ApiCalls, NoAnswerError
from .native_quota_source import path_of

_DRY: Final = "?dryRun=All"


class Repair(NamedTuple):
    """The result of a repair of one quota.

    Attributes:
        done: the changes in words; in a dry run, the changes that would be made.
        why_not: why nothing was changed; empty where something was.
    """

    title: str
    done: tuple[str, ...] = ()
    why_not: str = ""


async def repair(calls: ApiCalls, quota: ResourceQuota, dialects: Dialects, *, rehearse: bool = False) -> Repair:
    """Adds the keys that count. A rehearsal passes rights and webhooks, and stores nothing."""
    if problems := unreadable(quota, dialects):
        return Repair(quota.title, why_not=" | ".join(map(str, problems)))
    return await _write(calls, quota, settle(quota, dialects), rehearse=rehearse)


async def revert(calls: ApiCalls, quota: ResourceQuota, *, rehearse: bool = False) -> Repair:
    """Removes our additions, unless a webhook of ours would add them again."""
    return await _write(calls, quota, reverted(quota), rehearse=rehearse)


async def _write(calls: ApiCalls, quota: ResourceQuota, settled: TwinnedQuota, *, rehearse: bool) -> Repair:
    path = path_of(quota.meta.namespace or "", quota.meta.name or "") + (_DRY if rehearse else "")
    try:
        answer = await calls.patch(path, _patch(quota, settled))
    except NoAnswerError as error:
        return Repair(quota.title, why_not=f"it may or may not be changed by now: {error}")
    if answer.status == HTTPStatus.CONFLICT:
        return Repair(quota.title, why_not="it was changed meanwhile; try again")
    if answer.status != HTTPStatus.OK:
        return Repair(quota.title, why_not=f"the API server answered {answer.status}: {answer.message()}")
    if _is_added_again(msgspec.json.decode(answer.body, type=ResourceQuota), settled):
        return Repair(quota.title, why_not="the webhook added it again: remove Halfcard first")
    return Repair(quota.title, settled.notes)


def _is_added_again(quota: ResourceQuota, settled: TwinnedQuota) -> bool:
    return any(change.op == "remove" and change.pointer[-1] in quota.hard for change in settled.changes)


def _patch(quota: ResourceQuota, settled: TwinnedQuota) -> bytes:
    hard = {str(change.pointer[-1]): change.value for change in settled.changes}
    marks = {"annotations": {names.QUOTA_TWINS: settled.marks}}
    return msgspec.json.encode(
        {"metadata": {"resourceVersion": quota.meta.resource_version, **marks}, "spec": {"hard": hard}}
    )
