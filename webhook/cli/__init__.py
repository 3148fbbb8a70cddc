"""The command line. Each subcommand is a module, imported when it is asked for."""
