"""Makes the tables of the pages, each from the code that it describes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from prometheus_client import CollectorRegistry
from pydantic import BaseModel

from admission import metrics as admission_metrics
from admission.entry import body_bounds
from admission.policy import AdmissionPolicy
from admission.registration.static_guard import GUARDED
from admission.verdict import ALLOWED, Verdict
from certs import certificate_checks, controller, lifetimes
from certs import metrics as certs_metrics
from certs.chain_state import ChainState, object_paths
from certs.chains import chains
from certs.folder import folder_renewal
from certs.reconcile import ReconcileResult
from certs.tokens import token_plan
from cli.diagnosis.checks import CHECKS
from cli.output.roles import ROLES, THE_NAMESPACE
from deviceplugin import metrics as agent_metrics
from deviceplugin.usage import usage_metrics
from docs import glossary, package_map
from docs.container import container
from docs.kinds import kinds
from docs.programs import commands, processes
from docs.rights import rights
from docs.sentences import sentences
from docs.strengths import strengths
from docs.tables import code, table
from docs.values import values
from extender import metrics as extender_metrics
from extender.bind import forwarding
from extender.scheduler_api import wire as extender_wire
from halfcard import __version__, names
from halfcard.claims import CORES, Claim
from halfcard.dialects import ALL, INCOMPATIBLE, AmountRefusal, Dialect, Dialects, ParsedAmount
from halfcard.exit_codes import MEANINGS
from halfcard.node_folders import HARMLESS, SYSTEM_FOLDERS
from halfcard.pod.holders import WELL_KNOWN
from halfcard.problems import MAX_MESSAGE_BYTES, MAX_WARNING_CHARS, Rule
from halfcard.quantity import Quantity
from halfcard.quota.ledger import Ledger
from halfcard.ways_to_cards import ANNOTATIONS, MOUNTS, VARIABLES, Effect
from halfcard.webhook_configurations import configurations
from kube.lease.candidate import LeaseTimings
from kube.manifests import folder_source
from quota import metrics as quota_metrics
from quota.amount_metrics import AmountMetrics, NamedLedger
from serving import tls
from serving.certificate_expiry import add_expiry_metric
from serving.client_limits import ClientLimits
from serving.large_bodies import BYTES_PER_VALUE, FREE_VALUES, PLACES
from serving.listener import StopTimings
from settings import installation, sections


def exit_codes() -> str:
    return table(("code", "meaning"), MEANINGS.items())


# --- dialects --------------------------------------------------------------------------------------------------------


def dialects() -> str:
    """Returns an example of each dialect, and the claim that its code makes of it."""
    examples = ((dialect.name, amounts) for dialect in ALL for amounts in dialect.examples)
    rows = (
        (code(name), "<br>".join(code(f"{each}: {amount}") for each, amount in amounts.items()), _claimed(amounts))
        for name, amounts in examples
    )
    return table(("dialect", "in the pod", "claim"), rows)


def _claimed(amounts: Mapping[str, int]) -> str:
    (speaker,) = Dialects().speakers(amounts)
    claim = speaker.claim(amounts)
    return "" if claim is None else ", ".join(_words(claim))


def _words(claim: Claim) -> Iterator[str]:
    yield _cards(claim)
    if claim.exclusive:
        yield "exclusive"
    if claim.cores_pct is not None:
        yield f"{claim.cores_pct} % of the cores"
    if claim.memory_mib is not None:
        yield f"{claim.memory_mib} MiB"
    if claim.memory_pct is not None:
        yield f"{claim.memory_pct} % of the memory"


def _cards(claim: Claim) -> str:
    several = "s" if claim.cards > 1 else ""
    if not claim.exclusive and (claim.cores_pct, claim.memory_mib, claim.memory_pct) == (None, None, None):
        return f"{claim.cards} time slice{several} without amounts"
    return f"{claim.cards} {'different ' if claim.distinct and several else ''}card{several}"


_SPELLINGS: Final[Sequence[tuple[str, str]]] = (
    (names.VCUDA_CORE, "0.3"),
    (names.VCUDA_CORE, "300m"),
    (names.VCUDA_CORE, "3"),
    (names.VCUDA_CORE, "1.5"),
    (names.VCUDA_CORE, "0.305"),
    (names.VCUDA_MEMORY, "5Gi"),
    (names.VCUDA_MEMORY, "5000Mi"),
    (names.VCUDA_MEMORY, "1k"),
    (names.VCUDA_MEMORY, "5.5"),
    (names.NVIDIA_GPU, "0.5"),
)


def spellings() -> str:
    rows = ((code(f"{resource}: {text}"), _read(resource, text)) for resource, text in _SPELLINGS)
    return table(("written", "becomes"), rows)


def _read(resource: str, text: str) -> str:
    reading = _reader(resource).read(resource, Quantity.parse(text))
    if isinstance(reading, AmountRefusal):
        return f"refused: {reading.fix} [{reading.rule.code}]"
    return "".join((code(reading.amount), *_remarks(reading)))


def _remarks(reading: ParsedAmount) -> Iterator[str]:
    if reading.note:
        yield f", with a warning: {reading.note}"
    if reading.hint:
        yield f", with a warning: {reading.hint} [HC044]"


def _reader(resource: str) -> Dialect:
    return Dialects().by_resource[resource]


def together() -> str:
    """Returns which dialects the containers of one pod may mix."""
    pairs = [sorted(pair) for pair in INCOMPATIBLE]
    refused = "; ".join(f"{code(first)} with {code(second)} [HC011]" for first, second in sorted(pairs))
    everyone = ", ".join(code(dialect.name) for dialect in ALL)
    return f"Any two of {everyone} may be used in one pod, except {refused}."


# --- admission -------------------------------------------------------------------------------------------------------


def webhooks() -> str:
    objects = configurations(Dialects(), exempt=AdmissionPolicy().exempt_namespaces)
    rows = (_webhook(webhook) for configuration in objects for webhook in configuration["webhooks"])
    return table(("webhook", "path", "objects", "if it cannot be reached", "time-out"), rows)


def _webhook(webhook: Mapping[str, Any]) -> Sequence[str]:
    own = [rule for rule in webhook["rules"] if "." not in rule["apiGroups"][0]]
    objects = [resource for rule in own for resource in rule["resources"]]
    objects += ["[custom resources](#custom-resources)"] * (len(own) < len(webhook["rules"]))
    fails = {"Fail": "the object is refused", "Ignore": "the object is admitted unchanged"}[webhook["failurePolicy"]]
    name, path = webhook["name"].partition(".")[0], webhook["clientConfig"]["service"]["path"]
    return (code(name), code(path), ", ".join(objects), fails, f"{webhook['timeoutSeconds']} s")


def custom_resources() -> str:
    rows = ((code(kind), ", ".join(map(code, paths))) for kind, paths in WELL_KNOWN.items())
    return table(("kind", "where its pods are"), rows)


def settings_reference() -> str:
    """Returns the fields of the settings with their defaults and docstrings."""
    meanings = sentences(installation, "Settings")
    rows = (
        (code(name), code(_default(field.default)), meanings[name]) for name, field in _fields(installation.Settings)
    )
    parts = [table(("setting", "default", "meaning"), rows)]
    for model, of in (
        (sections.VcudaPrefix, "vcuda_prefixes"),
        (sections.TolerationSetting, "add_tolerations"),
    ):
        parts.append(f"An entry of {code(of)} has {_keys(model)}.")
    parts.append(f"{code('time_slicing')} has {_keys(sections.TimeSlicing)}.")
    return "\n\n".join(parts)


def _fields(model: type[BaseModel]) -> Iterable[tuple[str, Any]]:
    return model.model_fields.items()


def _keys(model: type[BaseModel]) -> str:
    return ", ".join(_key(name, field) for name, field in _fields(model))


def _key(name: str, field: Any) -> str:
    return code(name) if field.is_required() else f"{code(name)} (default {code(_default(field.default))})"


def _default(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


# --- escapes ---------------------------------------------------------------------------------------------------------


_CHECKED: Final = {
    Effect.CHOOSES: ("every pod", "HC021"),
    Effect.BRINGS: ("containers without a claim", f"HC029, unless `{names.VISIBLE_DEVICES}` is set"),
    Effect.LOOSENS: ("containers with a share", "HC022"),
    Effect.MAY_LOOSEN: ("containers with a share", "a warning, HC045"),
    Effect.NOTHING: ("nowhere", ""),
}


def variables() -> str:
    """Returns the table of variables, in its own order: where two rows fit a name, the first one counts."""
    head = ("variable", "read by", "what it does", "checked in", "harmless values", "rule")
    rows = (
        (f"`{row.name}{'*' * row.begins}`", row.reader, row.why, _CHECKED[row.effect][0], _harmless(row.harmless), rule)
        for row in VARIABLES
        for rule in (_CHECKED[row.effect][1],)
    )
    return table(head, rows)


def _harmless(values: Iterable[str]) -> str:
    return ", ".join(code(value) if value else "empty" for value in sorted(values))


def mounts() -> str:
    """Returns the table of mounts."""
    rows = (
        (f"`{row.path}{'*' * row.begins}`", row.reader, row.why, _CHECKED[row.effect][0], _MOUNT_RULES[row.effect])
        for row in MOUNTS
    )
    return table(("mount path", "read by", "what is there", "checked in", "rule"), rows)


_MOUNT_RULES: Final = {Effect.CHOOSES: "HC027", Effect.LOOSENS: "HC022"}


def device_annotations() -> str:
    """Returns the table of annotations that give devices to containers."""
    rows = ((code(f"{'*' * row.anywhere}{row.text}*"), row.reader, row.why) for row in ANNOTATIONS)
    return table(("annotation", "read by", "what it gives"), rows)


def paths() -> str:
    """Returns the folders of the system, and what is harmless in them."""
    folders = table(("folder", "what is there"), ((code(path), what) for path, what in SYSTEM_FOLDERS.items()))
    return f"{folders}\n\nHarmless are, with everything below: {', '.join(map(code, sorted(HARMLESS)))}."


def records() -> str:
    """Returns the annotations and labels that tenants may not write."""
    suffixes = [f"ANY-DOMAIN{suffix}{'*' if suffix.endswith('-') else ''}" for suffix in names.OWNED_SUFFIXES]
    listed = [code(text) for text in (*(f"{prefix}*" for prefix in names.OWNED_PREFIXES), *suffixes)]
    return f"{', '.join(listed)}."


# --- monitoring ------------------------------------------------------------------------------------------------------


def metrics() -> str:
    """Returns every metric of all processes, with the labels that its samples have."""
    registries = (_of_admission(), _of_extender(), _of_agent(), _of_quota(), _of_certs())
    found = {_exposed(each): each for registry in registries for each in registry.collect()}
    counted = [(code(name), each.type, _labels(each), each.documentation) for name, each in found.items()]
    gauges = usage_metrics.FAMILIES
    seen = [(code(each.name), "gauge", ", ".join(map(code, each.labels)), each.help) for each in gauges]
    return table(("metric", "type", "labels", "meaning"), sorted([*counted, *seen]))


def _of_admission() -> CollectorRegistry:
    registry = CollectorRegistry()
    counted = admission_metrics.WebhookMetrics(registry)
    counted.decided(names.MUTATE_PODS_PATH, ALLOWED, 0.0)
    counted.decided(names.MUTATE_PODS_PATH, Verdict((), ("[HC024] ",)), 0.0)
    counted.failed(400)
    counted.refused("", "")
    add_expiry_metric(registry, lambda: datetime.now(UTC))
    return registry


def _of_extender() -> CollectorRegistry:
    registry = CollectorRegistry()
    counted = extender_metrics.ExtenderMetrics(registry)
    counted.answered("filter", "ok", 0.0)
    counted.watch(leading=lambda: 1, nodes=lambda: 0, inconsistencies=lambda: 0)
    counted.handshake_failed("")
    counted.watch_callers(lambda: 0)
    return registry


def _of_agent() -> CollectorRegistry:
    registry = CollectorRegistry()
    counted = agent_metrics.AgentMetrics(registry, is_made_up=False)
    counted.count_call("allocate", "ok", 0.0)
    counted.count_rejected_pod("")
    counted.count_registration("")
    return registry


def _of_quota() -> CollectorRegistry:
    registry = CollectorRegistry()
    quota_metrics.watch(registry, leading=lambda: 1, controllers=tuple, exempt=lambda: 0, repaired=lambda: 0)
    AmountMetrics(registry, lambda: [NamedLedger("", "", Ledger({CORES: 0}))])
    quota_metrics.watch_native(registry, uncounted=lambda: 0, drifted=lambda: 0)
    return registry


def _of_certs() -> CollectorRegistry:
    registry = CollectorRegistry()
    (chain, _) = chains(names.NAMESPACE)
    counted = certs_metrics.CertificateMetrics(registry, (chain,))
    counted.record_check(ReconcileResult(ChainState(chain, dict.fromkeys(object_paths(chain))), None))
    counted.record_change(chain.authority)
    return registry


def _exposed(metric: Any) -> str:
    return str(metric.name) + ("_total" if metric.type == "counter" else "")


def _labels(metric: Any) -> str:
    found = {label for sample in metric.samples for label in sample.labels} - {"le"}
    return ", ".join(code(label) for label in sorted(found))


def limits() -> str:
    its, stopping = ClientLimits(), StopTimings()
    rows = (
        ("TLS handshake", _seconds(its.handshake_s)),
        ("header of a request, from its first byte", _seconds(its.header_s)),
        ("body of a request, from the end of its header", _seconds(its.body_s)),
        ("sending the answer", _seconds(its.write_s)),
        ("idle connection", _seconds(its.keep_alive_s)),
        ("connections of one listener", its.max_connections),
        ("requests on one connection", its.requests_per_connection),
        ("header", f"{its.max_header_bytes // 1024} KiB"),
        ("body of a review with two objects, as of an update", f"{body_bounds.MAX_BODY_BYTES // 2**20} MiB"),
        ("body of a review with one object", f"{body_bounds.MAX_OBJECT_BYTES // 2**20} MiB"),
        (
            "values in a body of a review or of preempt",
            f"{FREE_VALUES:,}, or one in {BYTES_PER_VALUE} bytes",
        ),
        ("reviews above 128 KiB at the same time", PLACES),
        ("body of filter and prioritize", f"{extender_wire.MAX_BODY_BYTES // 2**20} MiB"),
        ("body of preempt", f"{extender_wire.MAX_PREEMPTION_BYTES // 2**20} MiB"),
        ("body of bind", f"{extender_wire.MAX_BINDING_BYTES // 2**10} KiB"),
        ("message of a refusal", f"{MAX_MESSAGE_BYTES} bytes"),
        ("one warning", f"{MAX_WARNING_CHARS} characters"),
        ("after SIGTERM: continues to serve, but is not ready (`--grace`)", _seconds(stopping.grace_s)),
        ("then: closes each connection after its next answer", _seconds(stopping.drain_s)),
        ("then: finishes requests that have started, at most", _seconds(stopping.finish_s)),
    )
    return table(("what", "limit"), rows)


def lease() -> str:
    timings = LeaseTimings()
    rows = (
        ("another replica may take the Lease, if it was not renewed for", _seconds(timings.duration_s)),
        ("the leader binds or writes, after it sent its last renewal, for at most", _seconds(timings.decides_for_s)),
        ("the leader renews the Lease about every", _seconds(timings.renew_every_s)),
        ("a replica that failed to take the Lease tries again after", _seconds(timings.retry_after_s)),
        ("a replica that forwards a bind to the leader waits at most", _seconds(forwarding.TIMEOUT_S)),
    )
    return table(("what", "how long"), rows)


def _seconds(seconds: float) -> str:
    return f"{seconds:g} s"


def certificate_lifetimes() -> str:
    rows = (
        ("a CA is valid for", _days(lifetimes.AUTHORITY_LIFE)),
        ("a certificate is valid for", _days(lifetimes.LEAF_LIFE)),
        ("the certificate that you copy to kube-scheduler is valid for", _days(lifetimes.COPIED_LEAF_LIFE)),
        ("a CA or certificate is renewed after", "two thirds of its life"),
        ("the extender's CA is valid for", f"{_days(lifetimes.LONG_AUTHORITY_LIFE)}; it is replaced only on request"),
        ("all are valid from", f"{_hours(certificate_checks.BACKDATED)} before they were made"),
        (
            "from replacing the last certificate of an old CA to removing the CA from `ca.crt`",
            _hours(lifetimes.RETIREMENT),
        ),
        (
            "in a cluster, from the last `caBundle` with a new CA to the certificates from that CA",
            _minutes(lifetimes.KNOWN_AFTER),
        ),
        (
            "the extender's certificate, and one in a folder, is replaced after a new CA",
            f"at the latest {_days(lifetimes.LAST_CALL)} before it expires",
        ),
        ("a caller token is replaced after", _minutes(token_plan.TOKEN_LIFE)),
        ("from making a caller token to registering it", _minutes(lifetimes.KNOWN_AFTER)),
        ("from registering it to refusing the one before", _minutes(token_plan.TOKEN_RETIREMENT)),
        ("`python -m certs keep` reconciles every", _seconds(controller.EVERY_S)),
        ("`halfcard serve` checks its certificates every", _seconds(folder_renewal.EVERY_S)),
        ("a server checks its certificate files for changes every", _seconds(tls.POLL_S)),
        ("`halfcard serve` checks its state folder for changes every", _seconds(folder_source.POLL_SECONDS)),
    )
    return table(("what", "how long"), rows)


def _days(span: timedelta) -> str:
    return f"{span.days} days"


def _minutes(span: timedelta) -> str:
    return f"{span.total_seconds() / 60:g} min"


def _hours(span: timedelta) -> str:
    return f"{span.total_seconds() / 3600:g} h"


def checks() -> str:
    """Returns every check of `halfcard doctor`."""
    rows = ((code(check.name), check.severity, check.rule, check.why) for check in CHECKS)
    return table(("check", "severity", "what should be", "why"), rows)


def roles() -> str:
    """Returns the role that each command needs."""
    where = {"": "the cluster", THE_NAMESPACE: "the namespace"}
    rows = (
        (code(f"halfcard {command}"), code(role.name), where.get(role.namespace, code(role.namespace)))
        for command, role in ROLES.items()
    )
    return table(("command", "ClusterRole", "in"), rows)


def guard() -> str:
    """Returns the rules that the static guard enforces."""
    return table(("code", "rule"), ((f"[{each.code}](problems.md#{each.code.lower()})", each.text) for each in _held()))


def _held() -> Iterable[Rule]:
    return sorted((each.rule for each in GUARDED), key=lambda rule: rule.code)


FRAGMENTS: Final[Mapping[str, Callable[[], str]]] = {
    "dialects": dialects,
    "spellings": spellings,
    "together": together,
    "webhooks": webhooks,
    "custom-resources": custom_resources,
    "settings": settings_reference,
    "variables": variables,
    "paths": paths,
    "mounts": mounts,
    "device-annotations": device_annotations,
    "records": records,
    "metrics": metrics,
    "limits": limits,
    "lease": lease,
    "version": lambda: f"Halfcard {__version__}",
    "lifetimes": certificate_lifetimes,
    "checks": checks,
    "guard": guard,
    "roles": roles,
    "container": container,
    "strengths": strengths,
    "kinds": kinds,
    "rights": rights,
    "values": values,
    "commands": commands,
    "processes": processes,
    "exit-codes": exit_codes,
    "packages": package_map.tables,
    "glossary": glossary.tables,
}
