"""A certificate controller with short intervals: seconds instead of the minutes and hours of an installation."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final

from certs.chains import chains
from certs.process import CertificateService
from certs.tokens.token_plan import TokenRules
from certs.webhooks.registration import RegisteredWebhooks
from certs.webhooks.registration_plan import wanted_webhooks
from halfcard import names
from kube.api.kubeconfig import from_kubeconfig
from serving.address import argument
from serving.lifecycle import Lifecycle, run
from serving.log import Log, LogForm
from settings.installation import Settings

_KNOWN_AFTER: Final = (timedelta(seconds=4), timedelta(seconds=8))
"""API servers learn of a CA at once; the extender, which checks the scheduler's certificate, reads its files again."""
_RETIRED_AFTER: Final = timedelta(seconds=10)
"""Servers read their files every 3 s, and the copy of the Secret is updated every 0.2 s."""
_EVERY_S: Final = 1.0

ADMISSION, EXTENDER = (
    replace(chain, rules=replace(chain.rules, known_after=known_after, retired_after=_RETIRED_AFTER))
    for chain, known_after in zip(chains(names.NAMESPACE), _KNOWN_AFTER, strict=True)
)


TOKENS: Final = TokenRules(timedelta(seconds=5), known_after=timedelta(seconds=10), retired_after=_RETIRED_AFTER)
"""The webhook reads its file every 3 s, on a busy machine later."""


def main() -> int:
    parser = ArgumentParser()
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--status", type=argument, required=True)
    asked = parser.parse_args()
    log = Log(form=LogForm.CONSOLE)
    access = from_kubeconfig(asked.kubeconfig)
    registered = RegisteredWebhooks(wanted_webhooks(Settings(), fails="Fail"), names.NAMESPACE, ADMISSION.leaves[0])

    async def serve(lifecycle: Lifecycle) -> None:
        kept = (ADMISSION, EXTENDER)
        await CertificateService(
            access, asked.status, kept, log, registered=registered, token_rules=TOKENS, every_s=_EVERY_S
        ).run(lifecycle)

    return run(serve, log=log)


if __name__ == "__main__":
    sys.exit(main())
