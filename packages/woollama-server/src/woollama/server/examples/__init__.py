"""Small MCP servers that come with woollama: to try things with, and to copy from."""
