"""The test kit for plugins: a running server without a socket, and a check of the contract.

It needs no test runner. With pytest, ``pytest_plugins = ["woollama.server.testing.pytest_plugin"]``
makes fixtures of it.
"""

from woollama.server.testing.asgi import Answer, AsgiClient
from woollama.server.testing.contract import check_plugin
from woollama.server.testing.served import Served, use_plugins

__all__ = ["Answer", "AsgiClient", "Served", "check_plugin", "use_plugins"]
