"""Settings: flag, then environment, then project file, then user file, then default."""
