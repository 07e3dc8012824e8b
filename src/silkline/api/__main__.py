"""`python -m silkline.api DESCRIPTOR PARENT HOST`: the API beside a supervisor. Settings come on standard input.

The parent opened the listening socket. If the parent dies, the kernel ends this process.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys

from silkline import log
from silkline.api.server import serve
from silkline.config import settings_from_json
from silkline.confine.environment import hide
from silkline.errors import SilklineError
from silkline.metrics.process import attach
from silkline.runner.process import Orphaned, die_with_parent


def main() -> int:
    descriptor, parent, host = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # until the server has its own
    log.set_up()
    try:
        die_with_parent(parent)
        hide((os.environ.get("PGPASSWORD", ""),))
        settings = settings_from_json(sys.stdin.buffer.read())
        log.set_up(log.level_named(settings.log_level or "info"), settings.log_format)
        log.hide(settings.secret_texts())
        attach(settings.data, "api")
        serve(settings, socket.socket(fileno=descriptor), host)
    except Orphaned:
        return 1
    except SilklineError as error:
        logging.getLogger("silkline.api").error("%s", error)
        return 1
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the process is ending; ignore a second signal
    return 0


if __name__ == "__main__":
    sys.exit(main())
