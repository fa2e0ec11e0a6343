"""`halfcard webhooks`: prints the two configuration objects that make the API server call Halfcard."""

from __future__ import annotations

import argparse
import base64
import sys
from pathlib import Path

import yaml

from admission.entry.callers import TokenFile
from admission.policy_settings import policy_of
from halfcard.caller_tokens import WITHOUT
from halfcard.exit_codes import EXIT_OK, EXIT_USAGE
from halfcard.webhook_configurations import configurations
from serving.errors import CannotServeError
from settings.installation import SettingsError
from settings.settings_file import load_settings


class _Plain(yaml.SafeDumper):
    """A YAML dumper without anchors, because people edit the output."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ca", type=Path, metavar="FILE", help="the CA that signed the webhook's certificate")
    parser.add_argument(
        "--caller-tokens",
        type=Path,
        metavar="FILE",
        help="the file of the webhook; its first token becomes part of the paths (default: the controller writes it)",
    )
    parser.add_argument("--settings", type=Path, metavar="FILE", help="the installation's settings")


def run(arguments: argparse.Namespace) -> int:
    try:
        policy = policy_of(load_settings(arguments.settings))
        bundle = base64.b64encode(arguments.ca.read_bytes()).decode() if arguments.ca else ""
        token = TokenFile(arguments.caller_tokens).accepted[0] if arguments.caller_tokens else WITHOUT
    except (SettingsError, CannotServeError, OSError) as error:
        print(f"halfcard webhooks: {error}", file=sys.stderr)
        return EXIT_USAGE
    objects = configurations(
        policy.dialects,
        exempt=policy.exempt_namespaces,
        ca_bundle=bundle,
        token=token,
        custom=policy.custom_kinds,
    )
    print(yaml.dump_all(objects, Dumper=_Plain, sort_keys=False, width=100), end="")
    return EXIT_OK
