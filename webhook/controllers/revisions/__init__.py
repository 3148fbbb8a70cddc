"""The last good revision of each policy, kept in the cluster as a PolicyRevision.

``revisions`` reads and makes the objects, ``keeper`` writes them, and the two states say what an
object's revisions mean for a replica that starts, or meets a change that it cannot use.
"""
