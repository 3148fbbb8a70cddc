"""``waddle bench``: how long policies take for objects."""
