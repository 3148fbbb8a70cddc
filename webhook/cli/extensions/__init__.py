"""waddle mutate and waddle expand: apply mutators and ExpansionTemplates to objects in files."""
