"""The commands of the server: serve, mcp and keys."""
