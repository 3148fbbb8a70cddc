"""Mutation: what Assign, AssignMetadata, ModifySet and AssignImage make of an object.

Pure: a snapshot of mutators and an object give another object, which shares with the first
whatever was not changed. It must not know HTTP, files or the API server.
"""
