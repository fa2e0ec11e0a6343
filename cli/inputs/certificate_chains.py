"""Reads the certificate chains of an installation; few users may read the Secret of a CA."""

from __future__ import annotations

from typing import Final

from certs import objects
from certs.chain_health import ReadChain
from certs.chain_state import ChainState, object_paths
from certs.chains import Chain, ObjectPath, chains
from certs.store import ApiStore, ForbiddenError
from halfcard import names
from kube.api.calls import ApiCalls

_CONTACT: Final = ObjectPath(
    f"/apis/coordination.k8s.io/v1/namespaces/{names.NAMESPACE}/leases", names.SCHEDULER_CONTACT
)


async def read_chains(calls: ApiCalls) -> list[ReadChain]:
    """Reads all chains.

    Raises:
        StoreError, NoAnswerError: an object cannot be read for another reason than a missing right.
    """
    store = ApiStore(calls)
    return [await _read_chain(store, chain) for chain in chains(names.NAMESPACE)]


async def read_certificates(calls: ApiCalls) -> tuple[list[ReadChain], objects.Object]:
    """Reads all chains, and the Lease that says which certificates schedulers show; empty if it cannot be read.

    Raises:
        StoreError, NoAnswerError: as `read_chains`.
    """
    try:
        contact = await ApiStore(calls).read(_CONTACT)
    except ForbiddenError:
        contact = None
    return await read_chains(calls), contact or {}


async def _read_chain(store: ApiStore, chain: Chain) -> ReadChain:
    items: dict[ObjectPath, objects.Object | None] = {}
    refused: dict[ObjectPath, str] = {}
    for place in object_paths(chain):
        try:
            items[place] = await store.read(place)
        except ForbiddenError as error:
            items[place], refused[place] = None, str(error)
    return ReadChain(ChainState(chain, items), refused)
