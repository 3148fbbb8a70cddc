"""waddle console: the pages over files or a cluster, and the access to them."""
