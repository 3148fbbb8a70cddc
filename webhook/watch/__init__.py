"""Watches kinds for several registrars.

In come intents ("this registrar wants these kinds"); out come changes, to each
registrar that wants the kind, through a queue of its own. What is watched is
the union of all intents, each kind once. Knows no policies and no controllers.
"""
