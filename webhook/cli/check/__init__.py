"""waddle check: validates a folder of policies, and shows the effect of a change."""
