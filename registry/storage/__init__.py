"""Stores for subjects, versions and schemas."""
