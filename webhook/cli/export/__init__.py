"""``waddle export``: policies for where no webhook runs."""
