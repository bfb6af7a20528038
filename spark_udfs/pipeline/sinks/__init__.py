"""Sinks: one module per kind with its keys in the file, its plan and its writer. `kinds` is the table of all kinds."""
