"""Records as text: JSON lines that lose nothing, and kcat's format strings. No I/O."""
