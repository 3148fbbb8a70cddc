"""The replicas of a process, and who of them does a thing: agreed upon by all without a leader.

Pods go in as the API server tells them, UIDs and choices come out. It must not know what is done,
nor how Pods are read.

>>> from webhook.replicas.rendezvous import chosen
>>> chosen("an object", ["a", "b", "c"]) == chosen("an object", ["c", "b", "a"])
True
"""
