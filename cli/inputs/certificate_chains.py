"""Reads the certificate chains of an installation; few users may read the Secret of a CA."""

from __future__ import annotations

from certs import objects
from certs.chain_health import ReadChain
from certs.chain_state import ChainState, object_paths
from certs.chains import Chain, ObjectPath, chains
from certs.store import ApiStore, ForbiddenError
from halfcard import names
from kube.api.calls import ApiCalls


async def read_chains(calls: ApiCalls) -> list[ReadChain]:
    """Reads all chains.

    Raises:
        StoreError, NoAnswerError: an object cannot be read for another reason than a missing right.
    """
    store = ApiStore(calls)
    return [await _read_chain(store, chain) for chain in chains(names.NAMESPACE)]


async def _read_chain(store: ApiStore, chain: Chain) -> ReadChain:
    items: dict[ObjectPath, objects.Object | None] = {}
    refused: dict[ObjectPath, str] = {}
    for place in object_paths(chain):
        try:
            items[place] = await store.read(place)
        except ForbiddenError as error:
            items[place], refused[place] = None, str(error)
    return ReadChain(ChainState(chain, items), refused)
