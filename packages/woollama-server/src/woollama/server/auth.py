"""Who may ask: framing, host, origin, token and size are checked before anything is read.

In this order, and a refusal at one never depends on what comes later:

1. **Framing.** ``Content-Length`` beside ``Transfer-Encoding``, or one of the headers below twice,
   is 400 and the end of the connection: what follows could be a smuggled request. A target in
   absolute form loses its scheme and authority; any other that is no path is 400.
2. **Host.** A name that is not ours is 403: a web page whose name was made to mean 127.0.0.1 (DNS
   rebinding) cannot reach the API. Ours are loopback names and addresses, the bound address, what
   ``[server] hosts`` lists and, when every address is listened on, any IP address, because an
   address cannot be rebound.
3. **Origin.** Absent (not a browser), loopback, the same as ``Host``, or listed in ``[server]
   origins``; any other is 403, for simple requests too. Listed origins get CORS headers, and their
   preflights are answered here, before the token that a preflight cannot carry.
4. **Token.** With one, every TCP client shows it, as ``Authorization: Bearer`` or ``x-api-key``.
   Without one, only loopback peers are answered. ``/healthz``, ``/readyz`` and ``HEAD /`` need
   none: probes have none, and they tell nothing but that the daemon runs.
5. **Size.** A declared length over the limit is 413, before the body is read.

The Unix socket is its owner's alone by file mode: rules 2 to 4 do not apply to it. That a request
came over it is said by the runner (``UNIX_STATE``), not concluded from a missing peer address.
"""

from collections.abc import Awaitable
from hmac import compare_digest
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

from woollama.core.canonical.value import Value
from woollama.core.errors import RequestError, kind_of_status
from woollama.server.address import Address, host_of, is_address, is_loopback, is_wildcard
from woollama.server.logs import request_log
from woollama.server.settings import Settings

__all__ = ["UNIX_STATE", "AccessRules", "Auth"]

UNIX_STATE = "woollama.unix"
"""The key in ``scope["state"]`` that a runner sets for requests over the Unix socket."""

_READ = frozenset(
    {
        b"host",
        b"origin",
        b"authorization",
        b"x-api-key",
        b"content-length",
        b"transfer-encoding",
        b"access-control-request-method",
        b"access-control-request-headers",
        b"access-control-request-private-network",
    }
)
_ONCE = _READ - {b"access-control-request-headers"}
_LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
_LOOPBACK_PEERS = frozenset({"127.0.0.1", "::1"})
_OPEN = frozenset(
    {
        ("GET", "/healthz"),
        ("GET", "/readyz"),
        ("HEAD", "/healthz"),
        ("HEAD", "/readyz"),
        ("HEAD", "/"),
    }
)

_EXPOSED = (
    b"x-request-id, x-woollama-request-id, x-woollama-dropped, x-woollama-hint, retry-after, "
    # An MCP client in a page must see which session it was given.
    b"mcp-session-id"
)
_PREFLIGHT = (
    (b"access-control-allow-methods", b"GET, HEAD, POST, DELETE, OPTIONS"),
    (b"access-control-max-age", b"600"),
)


class AccessRules(Value, frozen=True, kw_only=True):
    """Who is answered.

    Attributes:
        token: what a client must show; None asks for nothing and answers loopback peers only.
        hosts: names and addresses that are ours beside the loopback ones, in lower case.
        any_address: whether every IP address is ours.
        origins: web origins whose pages may use the API.
        body_limit_bytes: the longest declared body.
    """

    token: str | None = None
    hosts: frozenset[str] = frozenset()
    any_address: bool = False
    origins: frozenset[str] = frozenset()
    body_limit_bytes: int

    def __repr__(self) -> str:
        """Without the token."""
        return f"AccessRules(hosts={sorted(self.hosts)!r}, origins={sorted(self.origins)!r})"

    @classmethod
    def of(cls, settings: Settings, address: Address) -> "AccessRules":
        """The rules of a daemon with these settings that listens on ``address``."""
        server = settings.server
        return cls(
            token=settings.token,
            hosts=frozenset(host.lower().strip("[]") for host in (*server.hosts, address.host)),
            any_address=is_wildcard(address.host),
            origins=frozenset(origin.lower() for origin in server.origins),
            body_limit_bytes=server.body_limit_bytes,
        )


class Auth:
    """The layer that asks; a bare ASGI application, because everything goes through it."""

    def __init__(self, app: ASGIApp, rules: AccessRules) -> None:
        """Serves ``app`` to those that ``rules`` let in."""
        self._app = app
        self._rules = rules
        self._token = rules.token.encode() if rules.token is not None else None
        self._limit_bytes = rules.body_limit_bytes

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """One request; a lifespan passes, a web socket is closed.

        Raises:
            RequestError: it is refused, with the status to answer.
        """
        if scope["type"] == "http":
            headers = _headers(scope)
            if scope["path"][:1] != "/":
                _make_path(scope, headers)
            if UNIX_STATE not in scope.get("state", ()):
                self._check_host(scope, headers)
                if b"origin" in headers and self._check_origin(scope, headers):
                    return _answer_preflight(send, headers)
                self._check_token(scope, headers)
            self._check_size(headers)
        elif scope["type"] == "websocket":
            return send({"type": "websocket.close", "code": 1008})
        return self._app(scope, receive, send)

    def _check_host(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        given = headers.get(b"host")
        if given is None:
            if scope["http_version"] != "1.0":
                raise _refused(400, "The Host header is missing.", close=True)
            return
        authority = given.decode("latin-1")
        host = host_of(authority)
        if host in _LOOPBACK_HOSTS or host in self._rules.hosts:
            return
        if host is not None and (
            is_loopback(host) or (self._rules.any_address and is_address(host))
        ):
            return
        raise _refused(
            403,
            f"{authority[:200]!r} is no name of this server.",
            hint='If it should be one, list it in "hosts" under [server] in woollama.toml.',
        )

    def _check_origin(self, scope: Scope, headers: dict[bytes, bytes]) -> bool:
        """Whether this is a preflight that is to be answered."""
        given = headers[b"origin"]
        origin = given.decode("latin-1").lower()
        origins = self._rules.origins
        if origin in origins or "*" in origins:
            request_log(scope).headers += [
                (b"access-control-allow-origin", given),
                (b"access-control-expose-headers", _EXPOSED),
                (b"vary", b"origin"),
            ]
            return scope["method"] == "OPTIONS" and b"access-control-request-method" in headers
        scheme, _, authority = origin.partition("://")
        if scheme in {"http", "https"}:
            host = host_of(authority)
            same = authority.encode("latin-1") == headers.get(b"host", b"").lower()
            if same or (host is not None and is_loopback(host)):
                return False
        raise _refused(
            403,
            f"Pages of {origin[:200]!r} may not use this server.",
            hint='If they should, list it in "origins" under [server] in woollama.toml.',
        )

    def _check_token(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        if self._token is None:
            client = scope.get("client")
            if client and (client[0] in _LOOPBACK_PEERS or is_loopback(client[0])):
                return
            message = "Only programs on this machine are answered, because no token is set."
        else:
            if _shown(headers, self._token) or (scope["method"], scope["path"]) in _OPEN:
                return
            message = "This server wants its token, as Authorization: Bearer or as x-api-key."
        raise RequestError(
            message,
            kind="authentication",
            status=401,
            code="invalid_api_key",
            headers={"www-authenticate": "Bearer"},
        )

    def _check_size(self, headers: dict[bytes, bytes]) -> None:
        declared = headers.get(b"content-length")
        if declared is None:
            return
        if not declared.isdigit():
            raise _refused(400, "The Content-Length is no number.", close=True)
        if int(declared) > self._limit_bytes:
            raise _refused(
                413,
                f"The request body is longer than {self._limit_bytes} bytes.",
                hint='If it has to be, raise "body_limit_bytes" under [server] in woollama.toml.',
                code="request_too_large",
                close=True,
            )


def _headers(scope: Scope) -> dict[bytes, bytes]:
    """The headers that are read here.

    Raises:
        RequestError: they frame the request in two ways, or one of them is there twice.
    """
    found: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        if name in _READ:
            if name in found and name in _ONCE:
                raise _refused(400, f"The header {name.decode()!r} is there twice.", close=True)
            found[name] = value
    if b"transfer-encoding" in found and b"content-length" in found:
        message = "A request has a Content-Length or a Transfer-Encoding, not both."
        raise _refused(400, message, close=True)
    return found


def _make_path(scope: Scope, headers: dict[bytes, bytes]) -> None:
    """Takes an absolute-form target apart (RFC 9112, 3.2.2): its authority stands for ``Host``."""
    raw: bytes = scope["raw_path"]
    scheme, separator, rest = raw.partition(b"://")
    if not separator or scheme.lower() not in {b"http", b"https"}:
        raise _refused(400, "The request target must be a path.", close=True)
    authority, slash, path = rest.partition(b"/")
    headers[b"host"] = authority
    scope["raw_path"] = slash + path or b"/"
    scope["path"] = request_log(scope).path = unquote(scope["raw_path"].decode("ascii"))


def _shown(headers: dict[bytes, bytes], token: bytes) -> bool:
    scheme, _, credential = headers.get(b"authorization", b"").partition(b" ")
    bearer = credential.strip() if scheme.lower() == b"bearer" else b""
    # Both are compared in every case: how long it takes tells nothing.
    return compare_digest(bearer, token) | compare_digest(headers.get(b"x-api-key", b""), token)


async def _answer_preflight(send: Send, headers: dict[bytes, bytes]) -> None:
    pairs = list(_PREFLIGHT)
    wanted = headers.get(b"access-control-request-headers")
    if wanted is not None:
        pairs.append((b"access-control-allow-headers", wanted))
    if b"access-control-request-private-network" in headers:
        pairs.append((b"access-control-allow-private-network", b"true"))
    await send({"type": "http.response.start", "status": 204, "headers": pairs})
    await send({"type": "http.response.body", "body": b""})


def _refused(
    status: int,
    message: str,
    *,
    hint: str | None = None,
    code: str | None = None,
    close: bool = False,
) -> RequestError:
    return RequestError(
        message,
        kind=kind_of_status(status),
        status=status,
        code=code,
        hint=hint,
        headers={"connection": "close"} if close else None,
    )
