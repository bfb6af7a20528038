"""The broker's sockets: the only place that knows asyncio."""
