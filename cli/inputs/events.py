"""Reads events of the API server, which are kept for an hour."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from kube.api.calls import ApiCalls

_MOST: Final = 500


async def events(
    calls: ApiCalls, fields: Mapping[str, str], namespace: str = "", *, most: int = _MOST
) -> list[Mapping[str, Any]] | None:
    """Reads the first events with these fields, the newest first; None if the user may not read them."""
    where = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
    selector = ",".join(f"{key}={value}" for key, value in fields.items())
    answer = await calls.get(f"/api/v1{where}/events?{urlencode({'fieldSelector': selector, 'limit': most})}")
    if answer.status != HTTPStatus.OK:
        return None
    found = msgspec.json.decode(answer.body).get("items") or ()
    return sorted(found, key=last_seen, reverse=True)


def last_seen(event: Mapping[str, Any]) -> str:
    """Returns when an event was last seen: a new scheduler writes a series, an old one a last time."""
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return str(next(filter(None, times), ""))
