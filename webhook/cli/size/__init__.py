"""waddle size: estimates the processor time and memory of an installation."""
