"""io.jwt.*: tokens, their keys and signatures."""
