"""waddle report: the policy reports of a cluster, as a table or as documents."""
