"""The composition root: settings, process and command line."""
