"""The broker's sockets. Only this package uses asyncio."""
