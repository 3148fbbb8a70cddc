"""waddle size: what an installation needs of processor time and memory."""
