"""The rules about variables, by the table of `halfcard.ways_to_cards`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from halfcard import names
from halfcard.claims import Claim
from halfcard.pod.spec import Container, ContainerPath, EnvFrom, EnvVar
from halfcard.problems import ENV_FROM, ENV_LOOSENS, ENV_WIDENS, LIBRARY_PATH, UNHIDDEN, Problem
from halfcard.ways_to_cards import NVIDIA_RUNTIME, VARIABLES, WATCHED, Effect, Variable, variable_row

from .subject import ReviewStage, Subject


def variables_are_allowed(subject: Subject) -> Iterator[Problem]:
    for place, claim in subject.containers:
        for number, variable in enumerate(place.container.env or ()):
            if variable.name.startswith(WATCHED):
                yield from _variable(f"{place.where}.env[{number}]", variable, claim)
        for number, source in enumerate(place.container.env_from or ()):
            yield from _source(subject, f"{place.where}.envFrom[{number}]", source, claim)


def _variable(where: str, variable: EnvVar, claim: Claim | None) -> Iterator[Problem]:
    row = variable_row(variable.name)
    if row is None or not _is_set(variable, row):
        return
    if row.effect is Effect.CHOOSES:
        got = f"{variable.name}={'(valueFrom)' if variable.value_from else variable.value}"
        yield ENV_WIDENS.broken(where, got, "remove it, and ask for GPU in resources")
    elif row.effect is Effect.LOOSENS and _is_share(claim):
        yield ENV_LOOSENS.broken(where, variable.name, "remove it")
    elif row.effect is Effect.MAY_LOOSEN and _is_share(claim):
        yield LIBRARY_PATH.broken(where, variable.name, "remove it if the image works without it")


def _is_set(variable: EnvVar, row: Variable) -> bool:
    """Returns whether the variable has a value that matters; one from elsewhere may be any."""
    return bool(variable.value_from) or (variable.value or "") not in row.harmless


def _is_share(claim: Claim | None) -> bool:
    return claim is not None and claim.is_share


def _source(subject: Subject, where: str, source: EnvFrom, claim: Claim | None) -> Iterator[Problem]:
    """Judges the variables of a source where its keys are known, else the variables that its prefix could begin."""
    refused = {Effect.CHOOSES, Effect.LOOSENS} if _is_share(claim) else {Effect.CHOOSES}
    keys = _known_keys(subject, source)
    if keys is None:
        if source.prefix and any(_could_be(source.prefix, refused)):
            yield ENV_FROM.broken(f"{where}.prefix", source.prefix, "use another prefix")
        return
    for name in sorted(source.prefix + key for key in keys):
        row = variable_row(name)
        if row is not None and row.effect in refused:
            yield ENV_FROM.broken(where, name, "remove the key from the ConfigMap, or list the keys you need under env")


def _known_keys(subject: Subject, source: EnvFrom) -> frozenset[str] | None:
    if source.config_map_ref is None:
        return None
    return subject.context.cluster.configmap_keys.get((subject.context.namespace, source.config_map_ref.name))


def _could_be(prefix: str, effects: Iterable[Effect]) -> Iterator[Variable]:
    return (row for row in VARIABLES if row.effect in effects and row.could_be_named(prefix))


# --- containers that must be told to see no card ---------------------------------------------------------------------


def cards_are_hidden(subject: Subject) -> Iterator[Problem]:
    """Refuses what the mutating webhook would have hidden; templates get no field, so they are not judged."""
    if subject.context.stage is not ReviewStage.FINAL:
        return
    for place in unhidden(subject):
        if why := _brings_cards(subject, place.container):
            where = f'{place.where}.env["{names.VISIBLE_DEVICES}"]'
            yield UNHIDDEN.broken(where, None, f"set it to {names.SEES_NOTHING}, because of {why}")


def unhidden(subject: Subject) -> Iterator[ContainerPath]:
    """Yields the containers without a claim that could see cards by their image, in a pod where that can happen."""
    for place, claim in subject.containers:
        if claim is not None or any(each.name == names.VISIBLE_DEVICES for each in place.container.env or ()):
            continue
        if subject.claims or _brings_cards(subject, place.container):
            yield place


def _brings_cards(subject: Subject, container: Container) -> str:
    """Returns the field by which NVIDIA's runtime may give the container cards; empty for none."""
    spec = subject.pod.spec
    if spec is not None and NVIDIA_RUNTIME in (spec.runtime_class_name or ""):
        return "runtimeClassName"
    for variable in container.env or ():
        row = variable_row(variable.name) if variable.name.startswith(WATCHED) else None
        if row is not None and row.effect is Effect.BRINGS and _is_set(variable, row):
            return variable.name
    sources = (source for source in container.env_from or () if _may_bring(subject, source))
    return next(("envFrom" for _ in sources), "")


def _may_bring(subject: Subject, source: EnvFrom) -> bool:
    keys = _known_keys(subject, source)
    if keys is None:
        return bool(source.prefix) and any(_could_be(source.prefix, {Effect.BRINGS}))
    rows = (variable_row(source.prefix + key) for key in keys)
    return any(row is not None and row.effect is Effect.BRINGS for row in rows)
