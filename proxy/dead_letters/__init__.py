"""Dead letters in topics and tables: reading, filters, re-driving. The REST API and the command line use it."""
