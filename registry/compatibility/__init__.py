"""May this reader read what that writer wrote? One checker per language."""
