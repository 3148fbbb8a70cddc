"""The command line. Each subcommand is a module, imported when it is asked for.

A folder is a subject: ``command`` has its options and calls ``run``, which does the work, and
``report`` makes texts of what came of it. What several commands share lies beside the folders.
``waddle test -f policies/ -f pod.yaml`` goes from :mod:`webhook.cli.main` to
:mod:`webhook.cli.test.command`, and its exit code is one of :mod:`webhook.cli.exit_codes`.
"""
