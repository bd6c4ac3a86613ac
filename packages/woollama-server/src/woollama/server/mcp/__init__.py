"""MCP servers whose tools woollama uses. The SDK is loaded when there is one (ruling RU-60)."""
