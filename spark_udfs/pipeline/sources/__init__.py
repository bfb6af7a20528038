"""Sources: one module per kind with its keys in the file, its plan and its DataFrames. `kinds` is their table."""
