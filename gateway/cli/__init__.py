"""The `headgate` command: one file per noun."""
