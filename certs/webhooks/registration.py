"""Keeps the webhook configurations: registers the webhooks once a replica serves them, repairs edits, and replaces the
caller token in their paths.
"""

from __future__ import annotations

import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus

import msgspec

from certs.chain_state import kind_of
from certs.chains import ObjectPath
from certs.objects import CA_CRT, Object
from certs.store import Store, StoreError
from certs.tokens.token_plan import registered_tokens, token_to_register
from certs.tokens.token_rotation import TokenRotation
from certs.webhooks.registration_plan import RegistrationStep, Wait, Write, is_rolled_out, plan_registration, with_token
from halfcard import names
from halfcard.caller_tokens import WITHOUT
from kube.api.calls import ApiCalls, NoAnswerError
from serving.log import Log

OnWrite = Callable[[ObjectPath, str], Awaitable[None]]


class _Conditions(msgspec.Struct):
    ready: bool | None = None
    terminating: bool | None = None


class _Endpoint(msgspec.Struct):
    conditions: _Conditions = msgspec.field(default_factory=_Conditions)


class _Slice(msgspec.Struct):
    """The endpoints of a Service, as far as registration reads them."""

    endpoints: list[_Endpoint] | None = None

    @property
    def is_ready(self) -> bool:
        """Returns whether an endpoint is ready; an unknown state counts as ready, as in the API's own rule."""
        return any(each.conditions.ready is not False for each in self.endpoints or ())

    @property
    def is_ending(self) -> bool:
        return any(each.conditions.terminating for each in self.endpoints or ())


class _Slices(msgspec.Struct):
    items: list[_Slice]


def slices_path(namespace: str) -> str:
    return f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"


def _deployment(namespace: str) -> ObjectPath:
    return ObjectPath(f"/apis/apps/v1/namespaces/{namespace}/deployments", names.ADMISSION_SERVICE)


def _of_the_webhook() -> str:
    return f"?labelSelector=kubernetes.io%2Fservice-name%3D{names.ADMISSION_SERVICE}"


@dataclass(frozen=True, slots=True)
class RegisteredWebhooks:
    """What is to be registered.

    Attributes:
        webhooks: those of each configuration.
        namespace: where the webhook's Service is.
        leaf: the Secret whose `ca.crt` the API server is to trust, whichever issuer made it.
    """

    webhooks: Mapping[ObjectPath, list[Object]]
    namespace: str
    leaf: ObjectPath


@dataclass(slots=True, eq=False)
class WebhookRegistration:
    """`reconcile` makes one pass; a failure is logged once, and tried again in the next.

    `on_write` receives each write and its reason.
    """

    store: Store
    calls: ApiCalls
    tokens: TokenRotation
    wanted: RegisteredWebhooks
    on_write: OnWrite
    log: Log
    _logged: dict[ObjectPath, str] = field(default_factory=dict, init=False)
    _checked: dict[ObjectPath, RegistrationStep] = field(default_factory=dict, init=False)

    def why_not_ready(self) -> str | None:
        """Returns why a configuration has no webhooks yet, so that `helm install --wait` waits for them."""
        if len(self._checked) < len(self.wanted.webhooks):
            return "the webhook configurations were not checked yet"
        waits = (each for each in self._checked.values() if isinstance(each, Wait) and not each.is_chosen)
        return next((f"the webhooks are not registered: {each.reason}" for each in waits), None)

    async def reconcile(self) -> None:
        async with self._logging(self.tokens.place):
            token = await self._token()
            for place, webhooks in self.wanted.webhooks.items():
                async with self._logging(place):
                    self._checked[place] = await self._reconcile(place, with_token(webhooks, token))

    @asynccontextmanager
    async def _logging(self, place: ObjectPath) -> AsyncIterator[None]:
        """Logs what fails with one object; the others, and the certificates, go on."""
        try:
            yield
        except (StoreError, NoAnswerError) as error:
            self._log_once(place, str(error))
        except Exception:  # noqa: BLE001 - a bug must not stop the renewal of certificates
            self._log_once(place, f"this is a bug, please report it: {traceback.format_exc()}")

    async def _token(self) -> str:
        """Returns the caller token to register; the configurations are read before the tokens that they name."""
        found = [await self.store.read(place) for place in self.wanted.webhooks]
        held = await self.tokens.reconcile(registered_tokens(found))
        is_replaced = WITHOUT not in held.registered or await self._is_replaced()
        return token_to_register(held, self.tokens.rules, now=self.tokens.clock(), is_replaced=is_replaced)

    async def _is_replaced(self) -> bool:
        """Returns whether all replicas, also ending ones, know of caller tokens; without a Deployment they do."""
        deployment = await self.store.read(_deployment(self.wanted.namespace))
        return deployment is None or (
            is_rolled_out(deployment) and not any(each.is_ending for each in await self._slices())
        )

    async def _reconcile(self, place: ObjectPath, webhooks: list[Object]) -> RegistrationStep:
        configuration = await self.store.read(place)
        is_empty = configuration is not None and not configuration.get("webhooks")
        bundle = await self._bundle() if is_empty else ""
        is_served = is_empty and await self._is_served()
        step = plan_registration(configuration, webhooks, bundle=bundle, is_served=is_served)
        self._log_once(place, step.reason if isinstance(step, Wait) else "")
        if isinstance(step, Write) and await self.store.patch(place, step.patch):
            self.log.event("webhooks written", object=f"{kind_of(place)} {place.name}", reason=step.reason)
            if not step.is_routine:
                await self.on_write(place, step.reason)
        return step

    async def _bundle(self) -> str:
        secret = await self.store.read(self.wanted.leaf)
        return str(((secret or {}).get("data") or {}).get(CA_CRT, ""))

    async def _is_served(self) -> bool:
        return any(each.is_ready for each in await self._slices())

    async def _slices(self) -> list[_Slice]:
        answer = await self.calls.get(slices_path(self.wanted.namespace) + _of_the_webhook())
        if answer.status != HTTPStatus.OK:
            raise StoreError(f"reading the endpoints of {names.ADMISSION_SERVICE}: {answer.refusal()}")
        return msgspec.json.decode(answer.body, type=_Slices).items

    def _log_once(self, place: ObjectPath, reason: str) -> None:
        """Logs a reason that was not the last one."""
        if reason and self._logged.get(place) != reason:
            self.log.warning("webhooks not registered", object=f"{kind_of(place)} {place.name}", reason=reason)
        self._logged[place] = reason
