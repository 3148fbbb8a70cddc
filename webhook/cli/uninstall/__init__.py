"""waddle uninstall: finds and removes the objects that an installation left in a cluster."""
