"""Who this daemon is: an id that tells it from every other one, so that loops are noticed (RU-54).

One woollama may be a client of another. The id travels in a header on HTTP and under a ``_meta``
key on MCP; whoever receives its own id refuses to go round in a circle.
"""

from secrets import token_hex

__all__ = ["INSTANCE_HEADER", "INSTANCE_META", "new_instance_id"]

INSTANCE_HEADER = "x-woollama-instance"
INSTANCE_META = "woollama/instance"


def new_instance_id() -> str:
    """A fresh id; a configured one (``[server] instance_id``) survives restarts."""
    return token_hex(8)
