"""``python -m webhook`` is ``waddle``."""

from webhook.cli.main import main

main()
