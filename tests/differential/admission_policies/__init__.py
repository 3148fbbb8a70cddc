"""Policies of the API server's own, made by a seed: its verdict beside ours."""
