"""A keeper of certificates in a hurry: what takes minutes and hours in an installation takes seconds here."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final

from certs.chains import chains
from certs.process import CertificateService
from halfcard import names
from kube.api.access import from_kubeconfig
from serving.address import argument
from serving.lifecycle import Lifecycle, run
from serving.log import Log, LogForm

_KNOWN_AFTER: Final = (timedelta(seconds=4), timedelta(seconds=8))
"""API servers hear of a CA at once; the extender, which is shown the scheduler's certificate, looks at its files."""
_RETIRED_AFTER: Final = timedelta(seconds=10)
"""Servers look at their files every 3 s, and the tests' kubelet at the Secret every 0.2 s."""
_EVERY_S: Final = 1.0

ADMISSION, EXTENDER = (
    replace(chain, rules=replace(chain.rules, known_after=known_after, retired_after=_RETIRED_AFTER))
    for chain, known_after in zip(chains(names.NAMESPACE), _KNOWN_AFTER, strict=True)
)


def main() -> int:
    parser = ArgumentParser()
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--status", type=argument, required=True)
    asked = parser.parse_args()
    log = Log(form=LogForm.CONSOLE)
    access = from_kubeconfig(asked.kubeconfig)

    async def serve(lifecycle: Lifecycle) -> None:
        await CertificateService(access, asked.status, (ADMISSION, EXTENDER), log, every_s=_EVERY_S).run(lifecycle)

    return run(serve, log=log)


if __name__ == "__main__":
    sys.exit(main())
