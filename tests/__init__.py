"""Waddle's tests."""
