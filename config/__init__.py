"""How this installation is set up: environment, settings, addresses, and the programs that serve it."""
