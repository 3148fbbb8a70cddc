"""Objects of a cluster become policies in force.

The reconciler takes each change, in order, to who applies its kind: templates and constraints
(``policies``, ``strategies``), mutators and ExpansionTemplates (``extensions``), Config and synced
data (``sync``). ``publication`` then swaps the revision and states what this replica enforces.
"""
