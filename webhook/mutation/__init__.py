"""Mutation: the effect of Assign, AssignMetadata, ModifySet and AssignImage on an object.

Pure: a snapshot of mutators and an object give another object, which shares all unchanged parts
with the first. It must not know HTTP, files or the API server.

For example, an Assign at ``spec.containers[name: *].imagePullPolicy`` gives a Pod with other
containers and the same ``metadata``.
"""
