from __future__ import annotations

from halfcard.api_paths import path_of_events, path_of_pod


def test_a_pod_and_events_have_the_paths_of_the_api() -> None:
    assert path_of_pod("team", "web-0") == "/api/v1/namespaces/team/pods/web-0"
    assert path_of_events("team") == "/api/v1/namespaces/team/events"


def test_no_name_leads_to_another_path() -> None:
    assert path_of_pod("../kube-system", "a/exec?x#y") == "/api/v1/namespaces/..%2Fkube-system/pods/a%2Fexec%3Fx%23y"
    assert path_of_events("a/b") == "/api/v1/namespaces/a%2Fb/events"
