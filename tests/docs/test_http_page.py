"""The page of the routes has every route of the application, and no other."""

import ast

from tests.docs.blocks import ROOT
from tests.docs.tables import tables_of
from woollama.server.routes import chat

ROUTES = ROOT / "packages/woollama-server/src/woollama/server/routes"


def test_every_route_is_there_with_its_method() -> None:
    made = {("POST", chat.PATH)}
    for path in ROUTES.glob("*.py"):
        made |= _routes_in(ast.parse(path.read_text("utf-8")))
    rows = tables_of("docs/reference/http.md")["HTTP routes"]
    assert sorted(made) == sorted((method, route) for method, route, _ in rows)


def _routes_in(tree: ast.AST) -> set[tuple[str, str]]:
    """``Route(path, endpoint, methods=[…])``; without methods it is GET."""
    found: set[tuple[str, str]] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Route":
            path = ast.literal_eval(node.args[0]).replace(":path}", "}")
            given = [each.value for each in node.keywords if each.arg == "methods"]
            methods: list[str] = ast.literal_eval(given[0]) if given else ["GET"]
            found |= {(method, path) for method in methods}
    return found
