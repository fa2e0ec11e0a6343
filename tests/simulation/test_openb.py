"""What rows of a trace mean, and which are refused."""

from __future__ import annotations

import pytest

from halfcard.claims import Claim, whole_cards
from simulation.openb import TableError, read_nodes, read_pods

from .trace import NODE_HEADS, POD_HEADS


def one_pod(row: str) -> tuple[list[Claim], tuple[str, ...], int, int, int]:
    (pod,) = read_pods(f"{POD_HEADS}\n{row}\n", "pods.csv")
    demand = pod.demand
    claims = [need.claim for need in demand.needs]
    return claims, demand.wanted.models, demand.cpu_milli, demand.memory_mib, pod.milli


def share(cores: int, cards: int = 1) -> Claim:
    return Claim(cards, cores, 0, exclusive=False, distinct=cards > 1, dialect="openb")


PODS = {
    "a share": ("p,6000,12288,1,460,,LS", ([share(46)], (), 6000, 12288, 460)),
    "a share that is finer than a hundredth is rounded up": ("p,0,0,1,455,,LS", ([share(46)], (), 0, 0, 460)),
    "a whole card": ("p,0,0,1,1000,,LS", ([whole_cards(1, "openb")], (), 0, 0, 1000)),
    "eight whole cards": ("p,0,0,8,1000,,LS", ([whole_cards(8, "openb")], (), 0, 0, 8000)),
    "shares of two cards": ("p,0,0,2,500,,LS", ([share(50, 2)], (), 0, 0, 1000)),
    "no card": ("p,1000,10,0,0,,LS", ([], (), 1000, 10, 0)),
    "no card, whatever stands beside it": ("p,1000,10,0,1000,,LS", ([], (), 1000, 10, 0)),
    "models": ("p,0,0,1,1000,V100M32|G2,LS", ([whole_cards(1, "openb")], ("g2", "v100m32"), 0, 0, 1000)),
}


@pytest.mark.parametrize(("row", "meant"), PODS.values(), ids=PODS.keys())
def test_a_row_of_pods_is_decoded(row: str, meant: object) -> None:
    assert one_pod(row) == meant


def test_a_table_without_a_column_of_models_requests_none() -> None:
    (pod,) = read_pods("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,2,1,500\n", "pods.csv")
    assert not pod.demand.wanted.narrows


def test_a_row_of_nodes_is_decoded() -> None:
    one, bare = read_nodes(f"{NODE_HEADS}\nn1,64000,262144,2,P100\nn2,1000,10,0,\n", "nodes.csv")
    assert (one.name, one.cpu_milli, one.memory_mib) == ("n1", 64000, 262144)
    assert [(card.index, card.model, card.memory_mib is None) for card in one.cards] == [
        (0, "P100", False),
        (1, "P100", False),
    ]
    assert bare.cards == ()


REFUSED = {
    "an empty file": ("", "pods.csv:1: no column name, cpu_milli, memory_mib, num_gpu, gpu_milli;"),
    "only heads": (f"{POD_HEADS}\n", "pods.csv:1: no rows"),
    "a column is missing": ("name,cpu_milli,memory_mib,num_gpu\np,1,1,1\n", "pods.csv:1: no column gpu_milli;"),
    "a negative number": (f"{POD_HEADS}\np,1,1,1,500,,\nq,-1,1,1,500,,\n", 'pods.csv:3: cpu_milli: got "-1"; must be'),
    "a fraction": (f"{POD_HEADS}\np,1.5,1,1,500,,\n", 'pods.csv:2: cpu_milli: got "1.5"'),
    "no number": (f"{POD_HEADS}\np,much,1,1,500,,\n", 'pods.csv:2: cpu_milli: got "much"'),
    "a number too many": (
        f"{POD_HEADS}\np,1,1,1,1001,,\n",
        'gpu_milli: got "1001"; must be a whole number from 0 to 1000',
    ),
    "a huge number": (f"{POD_HEADS}\np,1,1,{'9' * 500},1000,,\n", "pods.csv:2: num_gpu: got "),
    "digits of another script": (f"{POD_HEADS}\np,\u0663,1,1,500,,\n", "pods.csv:2: cpu_milli: got "),
    "nothing of a card": (f"{POD_HEADS}\np,1,1,1,0,,\n", 'gpu_milli: got "0"; must be from 1'),
    "a row that ends early": (f"{POD_HEADS}\np,1,1\n", 'pods.csv:2: num_gpu: got ""'),
    "no name": (f"{POD_HEADS}\n,1,1,1,500,,\n", 'pods.csv:2: name: got ""'),
    "a name twice": (f"{POD_HEADS}\np,1,1,1,500,,\np,1,1,1,500,,\n", 'pods.csv:3: name: got "p"; names must'),
    "a quote that does not end": (
        f'{POD_HEADS}\n"p,1,1,1,500,,\n',
        "no comma-separated values: unexpected end of data; check the quotes",
    ),
    "something else altogether": ("apiVersion: v1\nkind: Pod\n", "pods.csv:1: no column"),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_an_implausible_row_is_refused_with_file_and_line(text: str, message: str) -> None:
    with pytest.raises(TableError) as error:
        read_pods(text, "pods.csv")
    assert message in str(error.value)
    assert str(error.value).startswith("pods.csv:") and len(str(error.value)) < 300


def test_a_node_with_more_cards_than_any_machine_has_is_refused() -> None:
    with pytest.raises(TableError, match='gpu: got "65"; must be a whole number from 0 to 64'):
        read_nodes(f"{NODE_HEADS}\nn,1,1,65,T4\n", "nodes.csv")
