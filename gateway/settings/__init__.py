"""Settings, from command line, environment, project file, user file and defaults, in this order."""
