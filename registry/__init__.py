"""The schema registry: subjects, versions and compatibility."""
