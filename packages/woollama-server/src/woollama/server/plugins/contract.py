"""What a plugin is (contract version 1): declarations first, work between setup and teardown.

``docs/howto/extending.md`` builds one. What is neither in this module nor in
``woollama.server.testing`` may change at any time; what is here changes only with
``PLUGIN_API_VERSION``. New methods with a default that contributes nothing, and new fields of
values, do not count as changes.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, ClassVar, Protocol

import msgspec
from anyio.abc import TaskGroup

from woollama.core.canonical import NOTHING, Message, RunEvent, Value
from woollama.core.patterns import PatternBackend
from woollama.core.providers import Provider
from woollama.core.tools import ToolProvider
from woollama.core.transport import Timeouts, Transport
from woollama.server.plugins.models import no_models

__all__ = [
    "PLUGIN_API_VERSION",
    "SUPPORTED_PLUGIN_API_VERSIONS",
    "Health",
    "HealthCheck",
    "Plugin",
    "PluginContext",
    "PluginRoute",
    "ProvidedProvider",
    "RunModel",
    "Secret",
    "SecretText",
]

PLUGIN_API_VERSION = 1
"""The version of this contract."""

SUPPORTED_PLUGIN_API_VERSIONS = frozenset({1})
"""The versions a plugin may state."""

_BODY_LIMIT_BYTES = 32 * 1024 * 1024


class ProvidedProvider(Value, frozen=True, kw_only=True):
    """A provider and the transport that reaches it: the latter may start what it needs (RU-52)."""

    provider: Provider
    transport: Transport


class Secret(Value, frozen=True, kw_only=True):
    """A secret that a plugin declares. Its value comes from the environment, never from a file.

    Attributes:
        env: the name of the variable.
        required: whether the daemon refuses to start when it is unset or empty.
        help: one line for people: what it is and where one gets it.
    """

    env: str
    required: bool = False
    help: str = ""


class SecretText:
    """The value of a secret; whoever prints it prints ``***``."""

    def __init__(self, text: str) -> None:
        """Holds ``text``."""
        self._text = text

    def __repr__(self) -> str:
        """``***``."""
        return "***"

    def reveal(self) -> str:
        """The value itself: the only way to it, so that its uses can be searched for."""
        return self._text


class PluginRoute(Value, frozen=True, kw_only=True):
    """A route under the plugin's own prefix, ``/x/<name>``; clients authenticate as for ``/v1``.

    Attributes:
        path: begins with a slash; Starlette's ``{parameters}`` work.
        endpoint: ``async def endpoint(request) -> Response`` of Starlette, or an ASGI application
            that is no function. A ``WoollamaError`` it raises becomes the standard error object.
        methods: for an ASGI application, an empty one is every method.
    """

    path: str
    endpoint: Callable[..., Any]
    methods: tuple[str, ...] = ("GET",)


class Health(Value, frozen=True, kw_only=True):
    """How a part of a plugin is. ``detail`` is one line for people, and holds no secret."""

    ok: bool
    detail: str = ""


class RunModel(Protocol):
    """Runs a model of the daemon's, whoever provides it; what ``open_run`` of a backend returns."""

    def __call__(
        self,
        model: str,
        messages: Sequence[Message],
        *,
        system: str | None = None,
        params: Mapping[str, Any] = NOTHING,
        stream: bool = False,
    ) -> AbstractAsyncContextManager[AsyncIterator[RunEvent]]:
        """The events of one request without tools.

        Args:
            model: ``<provider>/<model>``.
            messages: the conversation.
            system: the system prompt before it.
            params: fields of the request, as ``temperature``.
            stream: whether deltas are wanted, as they come.

        Raises:
            UnknownModel: no provider has the model.
            RequestError: the request cannot be made as asked.
        """
        ...


HealthCheck = Callable[[], Awaitable[Health]]
"""Asked when somebody wants to know; has two seconds. What it raises counts as not healthy."""


class PluginContext(Value, frozen=True, kw_only=True):
    """What a plugin is given. Every method of one life of a plugin gets the same one.

    Attributes:
        config: its checked section, an instance of its ``config_type``; None when it has none.
        config_dir: where the configuration is; relative paths in a section start there.
        transport: the daemon's own HTTP transport; closed by the daemon.
        tasks: a task group for what must live as long as the plugin; ended behind ``teardown``. A
            task that fails ends the others of the plugin and is reported; the daemon goes on.
        notice: tells a person at the terminal what is going on, one short line; "" when it is over.
        secrets: the declared secrets that are set, by the names of their declarations.
        environ: the environment, ``.env`` included.
        timeouts: how long the daemon waits for a provider.
        body_limit_bytes: the longest request body that a route should take.
        run: runs one of the daemon's models, once the daemon has begun.
    """

    config: Any
    config_dir: Path
    transport: Transport
    tasks: TaskGroup
    notice: Callable[[str], None]
    secrets: Mapping[str, SecretText] = NOTHING
    environ: Mapping[str, str] = NOTHING
    timeouts: Timeouts = Timeouts()
    body_limit_bytes: int = _BODY_LIMIT_BYTES
    run: RunModel = no_models

    def __repr__(self) -> str:
        """Neither configuration nor environment: both can hold secrets."""
        return f"PluginContext(config_dir={str(self.config_dir)!r})"


class Plugin:
    """The base of every plugin.

    A package names one in the entry-point group ``woollama.plugins``: the entry's name is the
    plugin's, its value ``module:factory`` where the factory takes no argument and returns the
    plugin, usually the class itself. Importing the module does no work.

    The methods that say what it contributes do no work either: they are called to check the set of
    plugins and again when the daemon starts, all before any ``setup``.

    Attributes:
        name: ``^[a-z][a-z0-9-]{0,31}$``; the section of ``woollama.toml`` is ``plugins.<name>``.
        api_version: the version of this contract it was written for; must be stated.
        requires: names of plugins that must be enabled before it.
        summary: one line for people.
        config_type: the shape of its section; None has no section.
        secrets: the secrets it needs, by the names under which its context has them.
    """

    name: ClassVar[str]
    api_version: ClassVar[int]
    requires: ClassVar[tuple[str, ...]] = ()
    summary: ClassVar[str] = ""
    config_type: ClassVar[type[msgspec.Struct] | None] = None
    secrets: ClassVar[Mapping[str, Secret]] = NOTHING

    def providers(self, context: PluginContext) -> Sequence[ProvidedProvider]:
        """Providers; the name of each must be free."""
        return ()

    def pattern_backends(self, context: PluginContext) -> Sequence[PatternBackend]:
        """Systems of patterns; the id of each is the plugin's name, or begins with it and ``-``.

        They are searched behind recipes and the pattern folder, in the order of ``enabled``.
        """
        return ()

    def tool_providers(self, context: PluginContext) -> Sequence[ToolProvider]:
        """Tools for recipes; their own names begin with the plugin's name and a dot."""
        return ()

    def routes(self, context: PluginContext) -> Sequence[PluginRoute]:
        """HTTP routes under the plugin's own prefix."""
        return ()

    def health_checks(self, context: PluginContext) -> Mapping[str, HealthCheck]:
        """Checks by a short word for what they look at."""
        return NOTHING

    async def setup(self, context: PluginContext) -> None:
        """Begins its work, within 30 seconds; raising stops the start of the daemon."""

    async def teardown(self, context: PluginContext) -> None:
        """Ends its work, within 10 seconds, in the reverse order of the setups."""
