"""The process of ``waddle serve``: assembles, starts, watches and stops all other parts.

ARCHITECTURE.md lists the threads. They share immutable values, replaced by reference. A process
that only audits has no admission port; its first thread waits for signals.
"""
