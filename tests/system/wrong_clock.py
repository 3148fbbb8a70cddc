"""`waddle` on a node whose clock is ahead: `python -m tests.system.wrong_clock serve …`."""

import time

AHEAD_SECONDS = 300.0

_right = time.time

if __name__ == "__main__":
    time.time = lambda: _right() + AHEAD_SECONDS  # before anything imports it by name
    from webhook.cli.main import main

    main()
