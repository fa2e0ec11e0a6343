"""Makes the part of the values' schema for `settings`, from the model that reads them."""

from __future__ import annotations

import json
from typing import Any

from docs.sentences import sentences
from settings import installation
from settings.installation import Settings


def with_settings(schema: str) -> str:
    """Returns the schema of all values, with the settings as the code defines them now."""
    whole = json.loads(schema)
    model = Settings.model_json_schema(ref_template="#/$defs/{model}")
    whole["$defs"] = model.pop("$defs")
    whole["properties"]["settings"] = _plain({**model, "description": "Settings of all processes; each has a default."})
    for name, sentence in sentences(installation, Settings.__name__).items():
        whole["properties"]["settings"]["properties"][name]["description"] = sentence
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _plain(model: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in model.items() if key != "title"}
