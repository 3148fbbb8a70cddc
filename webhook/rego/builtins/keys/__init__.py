"""Public and private keys as x509.* and io.jwt.* share them: PEM, DER, JWK, and Go's forms."""
