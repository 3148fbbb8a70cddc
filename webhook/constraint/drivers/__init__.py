"""The drivers: the policy languages that templates may be written in."""
