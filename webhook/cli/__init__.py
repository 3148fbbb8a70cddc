"""The command line. Each subcommand is a module, imported on use.

Each subject has a folder: ``command`` has its options and calls ``run``, which does the work, and
``report`` formats the results. Code shared by several commands is beside the folders. ``waddle test
-f policies/ -f pod.yaml`` goes from :mod:`webhook.cli.main` to :mod:`webhook.cli.test.command`, and
its exit code is one of :mod:`webhook.cli.exit_codes`.
"""
