"""Wire shapes, both ways: bytes and JSON in, values out. Pure; knows no policy."""
