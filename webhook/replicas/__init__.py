"""The replicas of a process, and the choice of one of them without a leader.

Input are Pods from the API server; output are UIDs and choices. This package is independent of the
work to do, and of the way Pods are read.

>>> from webhook.replicas.rendezvous import chosen
>>> chosen("an object", ["a", "b", "c"]) == chosen("an object", ["c", "b", "a"])
True
"""
