"""The attacks, one module each: another one is added to the table in ``__main__``."""
