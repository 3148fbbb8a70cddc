"""Parses HashiCorp's configuration language, version 2, into a tree with positions."""
