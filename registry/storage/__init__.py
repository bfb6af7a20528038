"""Where subjects, versions and schemas are kept."""
