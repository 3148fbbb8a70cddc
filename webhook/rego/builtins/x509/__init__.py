"""x509.*: certificates, requests, keys and chains as Go reads and shows them."""
