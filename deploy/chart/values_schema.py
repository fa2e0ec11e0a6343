"""Makes the parts of the values' schema that the code defines: `settings`, and the arguments of each process."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from typing import Any, Final

from cli.command_tree import actions
from docs.programs import leaves, process_parsers
from docs.sentences import sentences
from settings import installation
from settings.installation import Settings

_OFFERED: Final = ("--log", "--grace", "--fake-gpus", "--without-cdi", "--plain-metrics")
"""The options that a value may set; the others name what the chart itself mounts, opens or creates."""

_COMMON: Final = ("priorityClassName", "nodeSelector", "affinity", "tolerations", "annotations", "labels", "resources")
"""The values that every component has, each with a definition in the schema."""


def from_code(schema: str) -> str:
    """Returns the schema of all values, with the settings and arguments as the code defines them now."""
    whole = json.loads(schema)
    _set_settings(whole)
    for component, parser in process_parsers().items():
        properties = whole["properties"][component]["properties"]
        for name in ("arguments", *_COMMON):
            properties.pop(name, None)
            properties[name] = {"$ref": f"#/definitions/{name}"}
        properties["arguments"] = _arguments([each for leaf in leaves(parser) for each in _patterns(leaf)])
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _set_settings(whole: dict[str, Any]) -> None:
    model = Settings.model_json_schema(ref_template="#/$defs/{model}")
    whole["$defs"] = model.pop("$defs")
    whole["properties"]["settings"] = _plain({**model, "description": "Settings of all processes; each has a default."})
    for name, sentence in sentences(installation, Settings.__name__).items():
        whole["properties"]["settings"]["properties"][name]["description"] = sentence


def _plain(model: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in model.items() if key != "title"}


def _arguments(patterns: list[str]) -> dict[str, Any]:
    known = ", ".join(f"`{each.partition('=')[0]}`" for each in patterns)
    return {
        "type": "array",
        "items": {"type": "string", "pattern": f"^({'|'.join(patterns)})$"},
        "description": f"More arguments of its process: {known}, each with `=` before its value.",
    }


def _patterns(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in actions(parser):
        option = action.option_strings[-1] if action.option_strings else ""
        if option in _OFFERED:
            yield option if action.nargs == 0 else f"{option}={_value(action)}"


def _value(action: argparse.Action) -> str:
    if action.choices:
        return f"({'|'.join(re.escape(str(each)) for each in action.choices)})"
    return r"[0-9]+([.][0-9]+)?" if action.type is float else ".+"
