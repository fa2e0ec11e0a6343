"""Names the tests of each attempt on the security page, and checks that these tests exist.

tests/docs/test_security.py tests the first table of the page.
"""

from __future__ import annotations

import re
from typing import Final

import pytest

from halfcard.quota.budgets import Budget, read_budget

from .pages import ROOT

_RACES: Final = "tests/cluster/test_extender_races.py"
_BINDINGS: Final = "tests/cluster/test_webhook_bindings.py"
_CERTS: Final = "tests/cluster/test_certs.py"
_TOKENS: Final = "tests/admission/test_callers.py"
_QUOTA: Final = "tests/cluster/test_gpu_quota.py"
_ISOLATION: Final = "tests/node/test_agent_isolation.py"
_DIALECTS: Final = "tests/node/test_agent_dialects.py"
_READERS: Final = "tests/kube/test_token_access.py"
_RIGHTS: Final = "tests/cluster/test_webhook_rights.py"
_AGENTS: Final = "tests/cluster/test_webhook_agents.py"
_SLOTS: Final = "tests/cluster/test_webhook_slots.py"
_CALLERS: Final = "tests/extender/bind/test_forwarding.py::test_calls_from_other_machines_need_a_client_certificate"

TESTS_OF_ATTEMPTS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "Who may call the webhook": {
        "A pod that reaches the webhook's port": (
            f"{_CERTS}::test_a_call_that_the_api_server_did_not_make_is_refused",
            f"{_TOKENS}::test_any_other_call_is_refused_before_its_body_is_read_and_counted",
        ),
        "Guessing a token": (
            "tests/halfcard/test_caller_tokens.py::test_only_an_accepted_token_is_accepted_and_a_missing_one_only_where_that_is_listed",
        ),
        "Reading the token in logs": (
            f"{_TOKENS}::test_neither_the_log_nor_the_answer_nor_a_metric_contains_a_token",
            "tests/cli/diagnosis/test_checks.py::test_no_finding_shows_a_caller_token",
        ),
        "Reading the Secret or the webhook configurations": (
            f"{_CERTS}::test_no_role_for_tenants_can_read_a_caller_token",
        ),
        "Using a token that was replaced": (
            f"{_TOKENS}::test_a_new_token_is_accepted_beside_the_old_one_and_a_retired_one_no_longer",
            f"{_CERTS}::test_caller_tokens_are_replaced_under_load_without_a_failed_call",
        ),
    },
    "The extender": {
        "Calling bind or preempt over the network": (
            f"{_RACES}::test_bind_and_preempt_need_a_client_certificate",
            "tests/cluster/test_extender_configurations.py::test_without_a_certificate_only_local_callers_may_bind",
        ),
        "Calling filter, prioritize or inspect without TLS": (_CALLERS,),
        "A forged record on a pod that has no node": (
            f"{_RACES}::test_a_pod_created_with_a_record_is_refused_by_filter_and_bind",
        ),
        "A record that names missing cards": (
            f"{_RACES}::test_a_forged_record_is_reported_and_affects_no_other_pod",
            "tests/halfcard/placing/test_node_usage.py::test_an_invalid_record_is_reported_and_affects_only_its_own_pod",
        ),
        "Requesting another policy": (
            f"{_BINDINGS}::test_a_tenant_may_choose_a_model_and_a_known_policy_for_a_pending_pod",
            "tests/halfcard/placing/test_layouts.py::test_only_preferred_cards_are_used",
        ),
        "Two replicas that both consider themselves the leader": (
            "tests/extender/bind/test_takeover.py::test_two_leaders_never_grant_a_card_twice",
            "tests/cluster/test_extender_outages.py::test_a_bind_that_arrives_after_the_takeover_is_rejected",
        ),
        "A pod without a record that another program bound": (
            f"{_RACES}::test_a_pod_bound_without_a_record_counts_by_its_requests",
        ),
        "Bodies that are huge, dense, slow or no JSON": (
            "tests/extender/bind/test_forwarding.py::test_bodies_of_bind_and_preempt_are_bounded",
            "tests/extender/scheduler_api/test_verbs.py::test_every_body_gets_an_answer",
            "tests/serving/test_deadlines.py::test_half_a_request_is_answered_408_and_closed",
        ),
        "A name or a message that forges log lines": (
            "tests/serving/test_log.py::test_a_log_line_is_one_printable_line_for_any_input",
            "tests/halfcard/test_problems.py::test_terminal_control_characters_are_escaped",
        ),
    },
    "Quota": {
        "A burst of creates": (
            "tests/cluster/test_gpu_quota_burst.py::test_a_burst_while_replicas_and_the_leader_are_killed",
        ),
        "Creating again and again": (
            "tests/halfcard/quota/test_ledger.py::test_one_namespace_cannot_use_up_a_shared_budget_with_reservations",
        ),
        "Making the webhook fail": (
            "tests/cluster/test_webhook_outages.py::test_killing_the_webhook_under_load_lets_no_bad_pod_through",
        ),
        "Reading, writing or deleting a ledger": (
            f"{_QUOTA}::test_tenants_have_no_access_to_ledgers",
            "tests/quota/test_ledger_controller.py::test_a_new_ledger_is_ready_once_all_pods_are_counted",
        ),
        "Removing the scheduling gate": (f"{_QUOTA}::test_a_user_who_may_edit_pods_cannot_remove_the_gate",),
        "Writing a quota's status": ("tests/docs/test_attempts.py::test_the_status_of_a_quota_decides_nothing",),
        "Another value of the label": (f"{_QUOTA}::test_each_user_is_limited_by_the_quota_per_label",),
        "A pod that bypassed the webhook": ("tests/halfcard/quota/test_stories.py::test_a_story",),
    },
    "The node agent": {
        "Taking over one node": (
            f"{_AGENTS}::test_an_agent_may_not_write_records_on_other_pods",
            f"{_AGENTS}::test_an_agent_may_write_the_capacity_of_its_own_node_only",
        ),
        "Using the token to change images, labels": (
            f"{_AGENTS}::test_an_agent_may_not_change_a_spec",
            f"{_AGENTS}::test_an_agent_may_change_nothing_of_a_pod_but_its_record",
        ),
        "A pod that itself requests `halfcard.dev/slot`": (
            f"{_SLOTS}::test_a_slot_number_that_a_tenant_wrote_is_corrected",
            f"{_SLOTS}::test_a_pod_without_slot_numbers_is_refused",
        ),
        "Reading everyone's pods": (
            "tests/node/test_agent_usage.py::test_usage_is_only_for_tokens_that_may_read_it",
            "tests/deviceplugin/test_app.py::test_without_tls_no_usage_is_served_except_metrics_on_request",
        ),
        "Being an agent": (
            f"{_RIGHTS}::test_agents_are_read_with_a_role_in_halfcards_namespace_and_not_with_those_of_tenants",
        ),
        "Taking more memory of a card": (
            f"{_DIALECTS}::test_pods_that_take_what_they_were_not_granted_are_evicted_and_their_neighbour_stays",
            "tests/extender/test_misuse_evictions.py::test_a_disruption_budget_does_not_keep_it",
        ),
        "Taking over one node, to evict": (
            f"{_AGENTS}::test_an_agent_may_not_write_records_on_other_pods",
            f"{_RIGHTS}::test_the_agent_has_no_other_rights",
        ),
        "A flood of guessed tokens": (
            f"{_READERS}::test_unknown_tokens_displace_no_known_one_and_are_reviewed_one_at_a_time",
        ),
        "A record that conflicts": (
            "tests/deviceplugin/allocate/test_assignment.py::test_a_pod_does_not_start_on_a_card_with_too_little_left",
        ),
        "With isolation, a container of a share": (
            f"{_DIALECTS}::test_pods_that_take_what_they_were_not_granted_are_evicted_and_their_neighbour_stays",
            "tests/deviceplugin/gpus/test_memory_limits.py::test_the_driver_gets_the_limit_of_a_cgroup",
        ),
        "With isolation, a held container": (
            f"{_ISOLATION}::test_a_container_cannot_change_its_limits_nor_use_the_nodes_memory_by_its_account",
        ),
    },
}
TESTS: Final = sorted({test for rows in TESTS_OF_ATTEMPTS.values() for tests in rows.values() for test in tests})


def attempts(title: str) -> list[str]:
    """Returns the first cell of each row of the table in a section."""
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    (section,) = re.findall(rf"^## {title}$(.*?)(?=^## )", page, re.MULTILINE | re.DOTALL)
    return [row.split("|")[1].strip() for row in re.findall(r"^\|.*\|$", section, re.MULTILINE)][2:]


@pytest.mark.parametrize("title", TESTS_OF_ATTEMPTS)
def test_every_attempt_has_a_test(title: str) -> None:
    found, named = attempts(title), TESTS_OF_ATTEMPTS[title]
    assert len(found) == len(named)
    assert [row for row in found if not any(row.startswith(begin) for begin in named)] == []


@pytest.mark.parametrize("test", TESTS)
def test_the_test_of_an_attempt_exists(test: str) -> None:
    file, _, name = test.partition("::")
    assert re.search(rf"^(?:async )?def {name}\(", (ROOT / file).read_text(), re.MULTILINE)


def test_the_status_of_a_quota_decides_nothing() -> None:
    quota = {
        "kind": "GpuQuota",
        "metadata": {"namespace": "team-a", "name": "gpu", "uid": "u", "generation": 1},
        "spec": {"hard": {"cores": 100}},
    }
    status = {"status": {"used": {"cores": "0"}, "hard": {"cores": "9000"}, "conditions": []}}
    assert isinstance(read_budget(quota), Budget)
    assert read_budget({**quota, **status}) == read_budget(quota)
