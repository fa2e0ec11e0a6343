"""The law between the verbs: what filter accepts bind places, and what it refuses bind refuses, if nothing changed."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from extender.bind.binder import NotBound
from extender.scheduler_api.answer_cache import FITS, AnswerCache
from halfcard import names
from tests.builders import PodBuilder, pod

from .bind.test_binder import Replica, manifest
from .pod_server import PodServer, serving_pods

NODES = ["n1", "n2"]
"""Two cards each."""

SHAPES = [
    pod().asks(core="30", memory="20"),
    pod().asks(core="70", memory="4"),
    pod().asks(core="60", memory="10").asks(core="60", memory="10"),
    pod().asks(core="100"),
    pod().asks(core="200"),
    pod().asks(sgpu="1"),
    pod().asks(sgpu="2"),
    pod().asks(gpu_mem="9"),
    pod().asks(core="50", memory="20").init(core="100"),
    pod().asks(core="300"),
    pod().asks(core="10", memory="1").annotated({names.ASK_MODEL: "a100"}),
]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(SHAPES), st.integers(0, 1)), min_size=1, max_size=8))
async def test_filter_and_bind_agree(
    asking: list[tuple[PodBuilder, int]],
) -> None:
    """Pods come one after the other and take what is there; first each is tried where it is refused."""
    with serving_pods() as server:
        replica = Replica(server)
        answers = AnswerCache(replica.state, replica.binder.rules.policy_of)
        for number, (shape, which) in enumerate(asking):
            await _try(server, replica, answers, manifest(f"p{number}", shape), which)
        replica.calls.close()


async def _try(
    server: PodServer, replica: Replica, answers: AnswerCache, asking: dict[str, object], which: int
) -> None:
    name = str(server.put(asking)["metadata"]["name"])
    replica.see_all()
    facts = replica.state.pod(f"uid-{name}")
    assert facts is not None
    by_reason = answers.feasible(facts.demand).by_reason(NODES)
    accepted = by_reason.pop(FITS, [])
    for node in [node for refused in by_reason.values() for node in refused]:
        assert await _refusal(replica, name, node)
    if accepted:
        node = accepted[which % len(accepted)]
        assert await _refusal(replica, name, node) == ""
        assert server.node(name) == node


async def _refusal(replica: Replica, name: str, node: str) -> str:
    try:
        await replica.bind(name, node)
    except NotBound as why:
        return str(why)
    return ""
