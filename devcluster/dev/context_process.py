"""`python -m devcluster.dev.context_process FOLDER`: runs Halfcard beside an existing cluster in the background.

It runs the webhook and renews its token until SIGTERM; while it runs, it holds the folder's lock, which it inherits.
"""

from __future__ import annotations

import json
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Final

from halfcard import names

from ..control_plane.network import free_port
from ..errors import CannotStartError
from ..processes import Component, Launcher
from ..services.installation import Replica
from ..waiting import wait_until
from . import context_access
from .background_process import end_at_signal
from .state import FAILED, READY, DevFolder, DevState, Program

_CHECKOUT: Final = Path(__file__).parents[2]
_RENEW_EVERY_S: Final = 1800  # a token lives for two hours
_TRY_AGAIN_AFTER_S: Final = 30
_STATUS_HOST: Final = "127.0.0.1"


def _run(folder: DevFolder, launcher: Launcher) -> None:
    folder.write(DevState("starting the admission webhook on this machine"))
    token = folder.cluster / "token"
    context_access.renew_token(folder, token)
    replica = _start(folder, launcher, token)
    wait_until(replica.ready, what="the webhook to be ready", details=replica.program.log_tail)
    _publish(folder, replica)
    _keep_token_fresh(folder, token)


def _start(folder: DevFolder, launcher: Launcher, token: Path) -> Replica:
    loan, status_port = context_access.ContextInstallation.of(folder), free_port(_STATUS_HOST)
    access = folder.cluster / "webhook.kubeconfig"
    access.write_text(context_access.access_of_account(folder, token))
    listen = f"[{loan.listen}]" if ":" in loan.listen else loan.listen
    command = (
        *(sys.executable, "-m", "admission", "--kubeconfig", str(access), "--tls-dir", str(folder.cluster / "pki")),
        *("--caller-tokens", str(context_access.caller_tokens(folder))),
        *("--admission", f"{listen}:{loan.port}", "--status", f"{_STATUS_HOST}:{status_port}", "--grace", "1"),
    )
    log = folder.cluster / "halfcard-admission.log"
    program = Component("halfcard-admission", command, log, launcher, {"PYTHONPATH": str(_CHECKOUT)})
    program.start()
    return Replica(program, _STATUS_HOST, loan.port, status_port)


def _publish(folder: DevFolder, replica: Replica) -> None:
    program, health = replica.program, f"http://{_STATUS_HOST}:{replica.status_port}{names.READY_PATH}"
    server = json.loads(folder.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    part = Program(program.name, program.pid, health, str(program.log))
    folder.write(DevState(READY, server=server, parts=(part,)))


def _keep_token_fresh(folder: DevFolder, token: Path) -> None:
    pause_s = _RENEW_EVERY_S
    while True:
        time.sleep(pause_s)
        try:
            context_access.renew_token(folder, token)
            pause_s = _RENEW_EVERY_S
        except Exception:  # noqa: BLE001 - whatever failed, the old token is valid for a while
            traceback.print_exc()
            pause_s = _TRY_AGAIN_AFTER_S


def main(path: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end_at_signal)
    folder, launcher = DevFolder(path), Launcher()
    try:
        _run(folder, launcher)
    except Exception as error:
        traceback.print_exc()
        why = str(error) if isinstance(error, CannotStartError) else f"{type(error).__name__}: {error}"
        folder.write(DevState(FAILED, why=why))
        raise SystemExit(1) from error
    finally:
        launcher.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
