"""What can be collected here: the clients for Node when they have been brought (node/README.md)."""

from pathlib import Path

collect_ignore = (
    [] if (Path(__file__).parent / "node" / "node_modules").is_dir() else ["test_mcp_node.py"]
)
