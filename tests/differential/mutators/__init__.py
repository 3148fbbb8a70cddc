"""Random mutators, objects and ExpansionTemplates, to our code and to Gatekeeper's module."""
