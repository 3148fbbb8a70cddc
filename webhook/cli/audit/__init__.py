"""waddle audit: one sweep over a cluster, or over a list of files, and its report."""
