"""Databases from the driver, a batch in one transaction: SQLite by Python's own module, PostgreSQL by psycopg."""
