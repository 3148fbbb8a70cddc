"""Public and private keys of x509.* and io.jwt.*: PEM, DER, JWK, and Go's forms."""
