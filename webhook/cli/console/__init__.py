"""waddle console: the pages over files or a cluster, and who may see them."""
