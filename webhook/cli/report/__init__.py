"""waddle report: the policy reports of a cluster, as tables or JSON."""
