"""The session at a cluster: which kinds are watched, and the tasks that follow them.

:class:`~webhook.controllers.follow.following.Following` puts everything of this package together. For
example, Config names Services: the session watches them, and each becomes data of the snapshot.
"""
