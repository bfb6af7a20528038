"""Subjects, versions and compatibility."""
