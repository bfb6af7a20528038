"""The schema languages: parse, validate and format schemas."""
