"""Reads records from the brokers as JSON: decodes and filters them, and explains undecodable records."""
