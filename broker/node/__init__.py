"""The broker node: connects the log, the state and the background work."""
