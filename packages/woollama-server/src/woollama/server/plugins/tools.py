"""The tools of plugins beside those of MCP servers, as one provider for recipes."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from woollama.core.errors import UnknownTool
from woollama.core.tools import Offer, ToolProvider
from woollama.core.tools.spec import PreparedTools
from woollama.server.plugins.contributions import Contributions

__all__ = ["JoinedTools", "join_tools"]


class JoinedTools:
    """A ``ToolProvider``: a name that begins with a plugin's and a dot is that plugin's.

    That no MCP server has such a name is checked before the start.
    """

    def __init__(
        self, others: ToolProvider, plugins: Mapping[str, tuple[ToolProvider, ...]]
    ) -> None:
        """Whatever is no plugin's is left to ``others``."""
        self._others = others
        self._plugins = plugins

    def tools_for(self, allow: list[str], /) -> Iterable[Offer]:
        """See ``ToolProvider.tools_for``; every provider gets only its own names."""
        mine = [name for name in allow if self._owner(name) is not None]
        rest = [name for name in allow if self._owner(name) is None]
        offered = (
            provider.tools_for([name for name in mine if self._owner(name) == plugin])
            for plugin, providers in self._plugins.items()
            for provider in providers
        )
        return [*self._others.tools_for(rest), *chain.from_iterable(offered)]

    async def prepare(self, allow: Iterable[str], /) -> None:
        """Passed on to those who have something to prepare."""
        if isinstance(self._others, PreparedTools):
            await self._others.prepare([name for name in allow if self._owner(name) is None])

    def dispatch(self, name: str, args: dict[str, Any], /) -> Any:
        """See ``ToolProvider.dispatch``.

        Raises:
            UnknownTool: the plugin has no tool of this name.
        """
        plugin = self._owner(name)
        if plugin is None:
            return self._others.dispatch(name, args)
        for provider in self._plugins[plugin]:
            if any(True for _ in provider.tools_for([name])):
                return provider.dispatch(name, args)
        raise UnknownTool(f"The plugin {plugin!r} has no tool {name!r}.")

    def _owner(self, name: str) -> str | None:
        plugin, dot, _ = name.partition(".")
        return plugin if dot and plugin in self._plugins else None


def join_tools(others: ToolProvider, contributions: Iterable[Contributions]) -> ToolProvider:
    """``others`` with the tools of plugins; just ``others`` when no plugin has any."""
    plugins = {each.name: each.tool_providers for each in contributions if each.tool_providers}
    return JoinedTools(others, plugins) if plugins else others
