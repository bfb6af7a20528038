"""Configs of topics and of the broker: definitions as data, values, what holds for a topic, and changes to them."""
