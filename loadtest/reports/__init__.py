"""What policy reports cost the cluster: bytes in etcd, and writes."""
