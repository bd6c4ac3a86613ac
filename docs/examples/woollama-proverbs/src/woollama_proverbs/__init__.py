"""Proverbs as patterns: a plugin of woollama."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from woollama.core.canonical import RunEvent, Value
from woollama.core.errors import RequestError, UnknownPattern
from woollama.core.patterns import Pattern, PatternCall, PatternVariable, fill, variables_of
from woollama.server.plugins.contract import (
    Health,
    HealthCheck,
    Plugin,
    PluginContext,
    PluginRoute,
    RunModel,
)

PROVERBS = {
    "wise": "Answer with one proverb about {{topic}}, and nothing else.",
    "haste": "Say in one sentence why haste makes waste.",
}


class ProverbsConfig(Value, frozen=True, kw_only=True):
    """``[plugins.proverbs]`` in ``woollama.toml``."""

    model: str | None = None
    more: Mapping[str, str] = {}


class ProverbsBackend:
    """The patterns: a ``PatternBackend`` is any object with these members."""

    id = "proverbs"

    def __init__(self, config: ProverbsConfig, run: RunModel) -> None:
        self._prompts = {**PROVERBS, **config.more}
        self._model = config.model
        self._run = run

    def list(self) -> Sequence[Pattern]:
        """What there is."""
        return tuple(self._pattern(name) for name in self._prompts)

    def find(self, name: str) -> Pattern | None:
        """The pattern of this name."""
        return self._pattern(name) if name in self._prompts else None

    def _pattern(self, name: str) -> Pattern:
        variables = tuple(
            PatternVariable(name=variable) for variable in variables_of(self._prompts[name])
        )
        return Pattern(name=name, variables=variables, source=self.id, model=self._model)

    async def render(
        self, name: str, variables: Mapping[str, Any], input: str | None = None
    ) -> str:
        """The whole prompt."""
        prompt = self._filled(name, variables)
        return prompt if input is None else f"{prompt}\n\n{input}"

    def open_run(self, call: PatternCall) -> AbstractAsyncContextManager[AsyncIterator[RunEvent]]:
        """Runs it on one of woollama's models."""
        model = call.model or self._model
        if model is None:
            raise RequestError("This proverb needs a model to run on.", param="model")
        return self._run(
            model,
            call.messages,
            system=self._filled(call.name, call.variables),
            params=call.options,
            stream=call.stream,
        )

    def _filled(self, name: str, variables: Mapping[str, Any]) -> str:
        if name not in self._prompts:
            raise UnknownPattern(f"There is no proverb {name!r}.", param="name")
        return fill(self._prompts[name], variables)


class ProverbsPlugin(Plugin):
    """What woollama is told. Every method only says what there is; none does any work."""

    name = "proverbs"
    api_version = 1
    summary = "Proverbs as patterns."
    config_type = ProverbsConfig

    def pattern_backends(self, context: PluginContext) -> Sequence[ProverbsBackend]:
        """One."""
        return (ProverbsBackend(context.config, context.run),)

    def routes(self, context: PluginContext) -> Sequence[PluginRoute]:
        """``GET /x/proverbs/count``."""

        async def count(_request: Request) -> Response:
            return JSONResponse({"proverbs": len(PROVERBS) + len(context.config.more)})

        return (PluginRoute(path="/count", endpoint=count),)

    def health_checks(self, context: PluginContext) -> Mapping[str, HealthCheck]:
        """It is always well."""

        async def sayings() -> Health:
            return Health(ok=True, detail=f"{len(PROVERBS) + len(context.config.more)} proverbs")

        return {"sayings": sayings}
