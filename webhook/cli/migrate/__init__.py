"""waddle migrate: policies of other tools, and what has to be changed in them."""
