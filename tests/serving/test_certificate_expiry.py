from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from prometheus_client import CollectorRegistry

from serving.certificate_expiry import add_expiry_metric
from serving.tls import ReloadingContext
from tests.serving.authority import NOW, Authority, write_pair


def test_days_left_count_down_and_follow_a_reload(tmp_path: Path) -> None:
    now, registry, authority = NOW, CollectorRegistry(), Authority()
    tls = ReloadingContext(write_pair(tmp_path, authority.issue()), clock=lambda: now)
    add_expiry_metric(registry, lambda: tls.leaf.not_after, lambda: now)

    def shown() -> float | None:
        return registry.get_sample_value("halfcard_served_certificate_days_left")

    ends = tls.leaf.not_after
    now = ends - timedelta(hours=12)
    assert shown() == 0.5
    now = ends + timedelta(days=2)
    assert shown() == 0
    write_pair(tmp_path, authority.issue(not_after=now + timedelta(days=40)))
    tls.reload()
    assert shown() == 40
