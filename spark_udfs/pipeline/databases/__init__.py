"""Database access from the driver: SQLite with the `sqlite3` module, PostgreSQL with psycopg."""
