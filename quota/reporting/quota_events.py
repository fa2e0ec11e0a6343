"""Sends Events about quotas and the pods that wait for them: one for each reason, which counts its repetitions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import msgspec

from halfcard import names
from halfcard.api_paths import path_of_events
from halfcard.events import MOST_CHARS, NOWHERE, event, moment, once
from halfcard.problems import printable
from kube.api.calls import ApiCalls
from serving.log import utc_now

_NAME_CHARS: Final = 200
"""The name of a pod may be as long as that of an Event."""


class QuotaEvents:
    def __init__(self, calls: ApiCalls) -> None:
        self._calls = calls

    async def send(self, about: Mapping[str, str], reason: str, message: str, *, is_warning: bool = True) -> str:
        """Sends one; `about` refers to the object. Returns a refusal as a sentence, or empty. Raises NoAnswerError."""
        content = once(reason, printable(message, MOST_CHARS), utc_now())
        collection = path_of_events(about.get("namespace", NOWHERE))
        digest = hashlib.sha256((about["uid"] + reason).encode()).hexdigest()[:16]
        name = f"{about['name'][:_NAME_CHARS].rstrip('-.')}.{digest}"
        known = await self._calls.get(f"{collection}/{name}")
        if known.status == HTTPStatus.OK:
            count = int(msgspec.json.decode(known.body).get("count") or 0) + 1
            news = {"count": count, "lastTimestamp": moment(utc_now()), "message": content["message"]}
            answer = await self._calls.patch(f"{collection}/{name}", msgspec.json.encode(news))
        else:
            source = {"component": names.QUOTA_SERVICE}
            answer = await self._calls.post(
                collection, event(about, {"name": name}, source, content, is_warning=is_warning)
            )
        if answer.status in (HTTPStatus.OK, HTTPStatus.CREATED):
            return ""
        where = "/".join(about[key] for key in ("namespace", "name") if key in about)
        return f"event at {where}: the API server answered {answer.status}: {answer.message()}"
