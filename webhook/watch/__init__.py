"""Watches kinds for several registrars.

Input are intents ("this registrar needs these kinds"). Output are changes, to each registrar of the
kind, through a queue of its own. The union of all intents is watched, each kind once. This package
is independent of policies and controllers.

For example, the synced data and the audit both need Pods. One watch serves both, and the one that
joins later gets the known Pods first.
"""
