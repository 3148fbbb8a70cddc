"""``waddle bench``: measures the time of policies for objects."""
