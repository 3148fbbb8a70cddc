"""Policies that nobody has had in force are compiled and tried by processes that can be ended."""
