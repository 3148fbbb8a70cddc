"""waddle mutate and waddle expand: what mutators and ExpansionTemplates make of objects in files."""
