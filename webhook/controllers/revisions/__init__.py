"""The last good revision of each policy, kept in the cluster as a PolicyRevision.

``revisions`` reads and makes the objects, ``keeper`` writes them. ``policy_state`` and
``extension_state`` apply them at a replica that starts, or that gets a change which it cannot use.
"""
