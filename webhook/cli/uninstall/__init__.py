"""waddle uninstall: what an installation left in a cluster is found and removed."""
