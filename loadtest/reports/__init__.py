"""The cost of policy reports for the cluster: bytes in etcd, and writes."""
