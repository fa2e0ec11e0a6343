"""`halfcard.quantity` accepts and prints the same quantities as the API server."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Final

import pytest

from devcluster.cluster import Cluster
from halfcard.quantity import InvalidQuantity, Quantity
from tests import builders

from .manifests import complete

REQUESTED: Final = re.compile(r"requested: requests\.memory=([^,]*), used: ")
BELOW_ZERO: Final = "below zero"
MILLI: Final = 10**6

SPELLINGS: Final = (
    *("0", "1", "00", "007", "+5", "-1", "-0", "1.", ".5", "1.50", "0.3", "300m", "1e3", "1E3", "1e+3", "1e-3", "12e2"),
    *("1k", "1000", "1000k", "1500", "1M", "1G", "1T", "1P", "1E", "5u", "5n", "0.5n", "1.0000000001", "0.0000000001"),
    *("1Ki", "1024Ki", "1000Ki", "1Mi", "5Gi", "1.5Gi", "0.3Gi", "0.5Ki", "512Mi", "1Ti", "1Pi", "1Ei", "8Ei", "100Ei"),
    *("9223372036854775807", "9223372036854775808", "1e18", "1e19", "123456789012345678901234567890", "-5Gi", "-1.5"),
    *("1E5", "2E", "2Ee", "1e", "5 Gi", " 5Gi ", "\t7", "5gi", "5GI", "5K", "5mi", "5KB", "0x10", "1_000", "1,5"),
    *(
        "NaN",
        "inf",
        "--1",
        "+-1",
        "1.2.3",
        "1e1.5",
        "1Gi5",
        "five",
        "\uff11",
        "1e3Gi",
        "1mm",
        "100%",
        "0e0",
        "0Ki",
        "0m",
    ),
)
RANDOM: Final = 120
SEED: Final = 20240607


def random_spelling(rng: random.Random) -> str:
    whole = str(rng.randrange(10 ** rng.choice([1, 3, 6, 9, 15])))
    fraction = rng.choice(["", "", "." + str(rng.randrange(10 ** rng.choice([1, 3, 6, 10])))])
    suffixes = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-4", "e5"]
    return rng.choice(["", "", "-", "+"]) + whole + fraction + rng.choice(suffixes)


def spelled_by_halfcard(text: str) -> str | None:
    """Returns Halfcard's canonical spelling, rounded up to thousandths as in a pod; None if it is no quantity."""
    try:
        quantity = Quantity.parse(text.strip(" "))  # as the API server reads JSON
    except InvalidQuantity:
        return None
    return BELOW_ZERO if quantity.nanos < 0 else str(replace(quantity, nanos=-(-quantity.nanos // MILLI) * MILLI))


@pytest.fixture(scope="module")
def empty_quota(cluster: Cluster) -> str:
    """A namespace whose quota of 0 makes each refusal print the sum of a pod's memory."""
    space = cluster.create_namespace("quantities")
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"requests.memory": "0"}}}
    cluster.request("POST", f"/api/v1/namespaces/{space}/resourcequotas", quota).must()
    cluster.wait_until(lambda: spelled_by_api_server(cluster, "1", space) == "1", what="the quota to be in force")
    return space


def spelled_by_api_server(cluster: Cluster, text: str | float, space: str) -> str | None:
    """Returns the API server's spelling of the sum with 0; an amount without a sum is printed as written."""
    pod = complete(builders.pod().container(requests={"memory": text}).container(requests={"memory": "0"}))
    answer = cluster.request("POST", f"/api/v1/namespaces/{space}/pods?dryRun=All", pod)
    if answer.ok:
        return "0"
    if requested := REQUESTED.search(answer.body["message"]):
        return requested[1]
    if answer.status == 422:
        assert "must be greater than or equal to 0" in answer.body["message"]
        return BELOW_ZERO
    assert answer.status == 400, answer.body
    return None


def test_every_spelling_is_read_and_printed_as_the_api_server_does(cluster: Cluster, empty_quota: str) -> None:
    rng = random.Random(SEED)
    spellings = (*SPELLINGS, *(random_spelling(rng) for _ in range(RANDOM)))
    pairs = {text: (spelled_by_halfcard(text), spelled_by_api_server(cluster, text, empty_quota)) for text in spellings}
    assert {text: pair for text, pair in pairs.items() if pair[0] != pair[1]} == {}


@pytest.mark.parametrize("number", [1, 0.3, 1.5, 1e3, 1000000, 1e21])
def test_a_number_is_read_as_its_text(cluster: Cluster, empty_quota: str, number: float) -> None:
    assert spelled_by_halfcard(str(number)) == spelled_by_api_server(cluster, number, empty_quota)


@pytest.mark.parametrize("text", ["+", ".", "e3", "1e200"])
def test_senseless_spellings_are_refused_only_by_halfcard(cluster: Cluster, empty_quota: str, text: str) -> None:
    assert spelled_by_halfcard(text) is None
    assert spelled_by_api_server(cluster, text, empty_quota) is not None
