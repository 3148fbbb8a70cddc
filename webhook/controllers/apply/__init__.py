"""Puts the cluster's policies in force.

The reconciler hands each change, in order, to the controller of its kind: templates and constraints
(``policies``, ``strategies``), mutators and ExpansionTemplates (``extensions``), Config and synced
data (``sync``). ``publication`` then swaps the revision and reports what this replica enforces.
"""
