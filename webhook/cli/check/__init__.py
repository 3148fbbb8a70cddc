"""waddle check: what a folder of policies is worth, and what a change of it would refuse."""
