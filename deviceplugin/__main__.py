"""`python -m deviceplugin`: runs the node agent for one kubelet.

Exit codes: 0 stopped as asked, 2 bad arguments or settings, 3 could not start.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from halfcard import names
from kube.api.access import from_service_account
from kube.api.kubeconfig import from_kubeconfig
from serving.lifecycle import Lifecycle, Main, start
from serving.log import Log
from settings.last_settings import ChosenSettings, load_or_last

from .arguments import add_arguments, paths_of
from .gpus.fake_gpus import FakeGpus
from .gpus.interface import Gpus
from .gpus.nvml import Nvml
from .options import AgentOptions
from .process import Agent


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m deviceplugin", description=__doc__)
    add_arguments(parser)
    arguments = parser.parse_args(argv)
    log = Log(form=arguments.log)
    return start(lambda: _agent(arguments, log), log=log)


def _agent(arguments: argparse.Namespace, log: Log) -> Main:
    settings = load_or_last(arguments.settings, arguments.state_dir / names.SETTINGS_ENTRY)
    access = from_kubeconfig(arguments.kubeconfig) if arguments.kubeconfig else from_service_account()
    gpus = _gpus(arguments)
    if gpus.is_made_up:
        log.warning("the cards of this node are simulated: containers get none", spec=arguments.fake_gpus)

    async def serve(lifecycle: Lifecycle) -> None:
        await Agent(access, gpus, options_of(settings), paths_of(arguments), log).run(lifecycle)

    return serve


def _gpus(arguments: argparse.Namespace) -> Gpus:
    return FakeGpus(arguments.fake_gpus, arguments.node) if arguments.fake_gpus else Nvml()


def options_of(chosen: ChosenSettings) -> AgentOptions:
    settings = chosen.settings
    slicing = settings.time_slicing
    return AgentOptions(
        settings.enabled_dialects(),
        settings.capacity_rules(),
        tuple(settings.advertised_resources()),
        settings.hami_device_split,
        slicing.place if slicing else None,
        slicing.default if slicing else "",
        settings.unchecked_namespaces(),
        settings.evict_for_misuse,
        settings.isolation,
        chosen.mistake,
    )


if __name__ == "__main__":
    sys.exit(main())
