"""`python -m deviceplugin`: runs the node agent for one kubelet.

Exit codes: 0 stopped as asked, 2 bad arguments or settings, 3 could not start.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from halfcard.exit_codes import EXIT_USAGE
from kube.api.access import AccessError, from_kubeconfig, from_service_account
from serving.lifecycle import Lifecycle, run
from serving.log import Log
from settings.installation import Settings, SettingsError
from settings.settings_file import load_settings

from .arguments import add_arguments, paths_of
from .gpus.fake_gpus import FakeGpus, SpecError
from .gpus.interface import Gpus
from .gpus.nvml import Nvml
from .options import AgentOptions
from .process import Agent


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m deviceplugin", description=__doc__)
    add_arguments(parser)
    arguments = parser.parse_args(argv)
    log = Log(form=arguments.log)
    try:
        settings = load_settings(arguments.settings)
        access = from_kubeconfig(arguments.kubeconfig) if arguments.kubeconfig else from_service_account()
        gpus = _gpus(arguments)
    except (SettingsError, AccessError, SpecError) as error:
        log.error("cannot start", why=str(error))  # noqa: TRY400 - the sentence says it; a trace would hide it
        return EXIT_USAGE
    if gpus.is_made_up:
        log.warning("the cards of this node are simulated: containers get none", spec=arguments.fake_gpus)

    async def serve(lifecycle: Lifecycle) -> None:
        await Agent(access, gpus, options_of(settings), paths_of(arguments), log).run(lifecycle)

    return run(serve, log=log)


def _gpus(arguments: argparse.Namespace) -> Gpus:
    return FakeGpus(arguments.fake_gpus, arguments.node) if arguments.fake_gpus else Nvml()


def options_of(settings: Settings) -> AgentOptions:
    slicing = settings.time_slicing
    return AgentOptions(
        settings.enabled_dialects(),
        settings.capacity_rules(),
        tuple(settings.advertised_resources()),
        settings.hami_device_split,
        slicing.place if slicing else None,
        slicing.default if slicing else "",
    )


if __name__ == "__main__":
    sys.exit(main())
