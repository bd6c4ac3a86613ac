"""Where a fabric server is, and what is done when it does not answer."""

import shutil
import socket
import tempfile
from collections.abc import Mapping
from typing import Protocol

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from woollama.core.errors import ConfigError, ReplyError, TransportError, WoollamaError
from woollama.core.exchange import read_body
from woollama.core.transport import Timeouts, Transport
from woollama.server.fabric.config import FabricConfig
from woollama.server.fabric.environment import child_environment, find_program
from woollama.server.fabric.handover import LeftAddress
from woollama.server.fabric.keys import with_key
from woollama.server.fabric.wire import decode_names, names_request
from woollama.server.process import Child, Launch
from woollama.server.supervision import Failure, Limits, Supervisor

__all__ = ["FabricServer", "ManagedServer", "RemoteServer", "answers"]

PROBE_S = 2.0
"""How long a fabric may take to show that it is there."""

_POLL_S = 0.1
_STOP_TIMEOUT_S = 2.0
_PROBE = Timeouts(connect=PROBE_S, first_byte=PROBE_S, between=PROBE_S, whole=PROBE_S)
_LIMIT_NAMES_BYTES = 16 * 1024 * 1024


class FabricServer(Protocol):
    """A fabric server that may have to be started."""

    async def base_url(self) -> str:
        """Where it is now, without a slash at the end; starts it when that is ours to do.

        Raises:
            ConfigError: there is no program to start.
            TransportError: it could not be started.
        """
        ...

    async def recover(self, error: TransportError) -> bool:
        """Does what can be done after a request got no answer; whether to send it again.

        Raises:
            TransportError: it could not be started again.
        """
        ...

    async def aclose(self) -> None:
        """Ends it, when it is ours."""
        ...


async def answers(transport: Transport, base_url: str, key: str | None) -> bool:
    """Whether a fabric server that takes our key answers there within two seconds."""
    request = with_key(names_request(base_url), key)
    try:
        async with transport.open(request, timeouts=_PROBE) as response:
            if not 200 <= response.status < 300:
                return False
            decode_names(await read_body(response, limit_bytes=_LIMIT_NAMES_BYTES))
    except (TransportError, ReplyError):
        return False
    return True


class RemoteServer:
    """A fabric that somebody else runs."""

    def __init__(self, url: str, transport: Transport, key: str | None) -> None:
        """At ``url``."""
        self._url = url.rstrip("/")
        self._transport = transport
        self._key = key

    async def base_url(self) -> str:
        """See ``FabricServer``."""
        return self._url

    async def recover(self, error: TransportError) -> bool:
        """Again, if it answers now and the request did not fail by its time limit."""
        return not _too_slow(error) and await answers(self._transport, self._url, self._key)

    async def aclose(self) -> None:
        """Nothing: it is not ours."""


class ManagedServer:
    """A fabric that we start, or one that another woollama has started.

    It listens on the address of the section, else on a free port that is kept for its restarts. A
    live one at the address of the section, or at the one that another woollama has left in
    ``$XDG_RUNTIME_DIR``, is used as it is and not ended.
    """

    def __init__(
        self,
        config: FabricConfig,
        *,
        tasks: TaskGroup,
        transport: Transport,
        key: str | None,
        environ: Mapping[str, str],
    ) -> None:
        """Nothing is started yet."""
        self._config = config
        self._transport = transport
        self._key = key
        self._environ = environ
        self._address = config.address
        self._others = False
        self._looked = False
        self._folder: str | None = None
        self._left = LeftAddress(environ.get("XDG_RUNTIME_DIR"))
        self._gate = anyio.Lock()
        self.supervisor: Supervisor[None] = Supervisor(
            "fabric",
            tasks,
            launch=self._launch,
            limits=Limits(start_timeout_s=config.start_timeout_s, stop_timeout_s=_STOP_TIMEOUT_S),
            explain=self._explain,
        )

    @property
    def ours(self) -> bool:
        """Whether the one in use is a child of ours."""
        return not self._others and self.supervisor.serving

    async def base_url(self) -> str:
        """See ``FabricServer``."""
        async with self._gate:
            if not self._looked:
                await self._look_for_another()
            if not self._others:
                await self._start()
            return f"http://{self._address}"

    async def recover(self, error: TransportError) -> bool:
        """Again when it answers now, or after a fresh start on the same address.

        Who passed a time limit is not sent again: the next try would take as long. But a fabric
        that does not show any more that it is there is ended.
        """
        async with self._gate:
            slow = _too_slow(error)
            if await answers(self._transport, f"http://{self._address}", self._key):
                return not slow
            if self._others:
                self._others = False
                if slow and self._config.address is None:
                    # It is not ours to end and holds its port.
                    self._address = None
            else:
                await self.supervisor.stop()
            if slow:
                return False
            await self._start()
            return True

    async def aclose(self) -> None:
        """Ends a child of ours, and takes back the address that was left for others."""
        started = self.supervisor.pid is not None
        await self.supervisor.stop()
        if started and self._address is not None:
            await anyio.to_thread.run_sync(self._left.remove, self._address)
        if self._folder is not None:
            await anyio.to_thread.run_sync(shutil.rmtree, self._folder, True)

    async def _look_for_another(self) -> None:
        left = await anyio.to_thread.run_sync(self._left.read)
        for address in dict.fromkeys(filter(None, (self._config.address, left))):
            if await answers(self._transport, f"http://{address}", self._key):
                self._address = address
                self._others = True
                break
            if self._config.address is not None:
                break
        self._looked = True

    async def _start(self) -> None:
        was_serving = self.supervisor.serving
        if not was_serving:
            await anyio.to_thread.run_sync(self._prepare)
        try:
            await self.supervisor.start()
        except TransportError:
            if self._config.address is None:
                # Perhaps somebody else has taken the port meanwhile.
                self._address = None
            raise
        if not was_serving and self._address is not None:
            await anyio.to_thread.run_sync(self._left.write, self._address)

    def _prepare(self) -> None:
        """What blocks, before a start: the program is looked for, a port and a folder are found."""
        if self._program() is None:
            raise ConfigError(
                f"fabric's program {self._config.command!r} is not there.",
                status=500,
                hint='Install fabric, or set "command" of fabric in mcp.json to its path.',
            )
        if self._address is None:
            self._address = _free_address()
        if self._folder is None:
            # One of its patterns writes files where it runs.
            self._folder = tempfile.mkdtemp(prefix="woollama-fabric-")

    def _program(self) -> str | None:
        return find_program(self._config.command, self._child_environ())

    def _child_environ(self) -> dict[str, str]:
        return child_environment(self._environ, self._config.env)

    def _launch(self) -> Launch[None]:
        # Everybody on this machine can read a key here: fabric takes it nowhere else.
        key = ("--api-key", self._key) if self._key else ()
        return Launch(
            argv=(
                self._program() or self._config.command,
                "--serve",
                "--address",
                self._address or "127.0.0.1:0",
                *key,
            ),
            env=self._child_environ(),
            ready=self._ready,
            cwd=self._folder,
        )

    async def _ready(self, _child: Child) -> None:
        # fabric tells nobody when it is ready.
        while not await answers(self._transport, f"http://{self._address}", self._key):  # noqa: ASYNC110
            await anyio.sleep(_POLL_S)

    def _explain(self, failure: Failure) -> WoollamaError:
        return TransportError(
            f"fabric could not be started: {failure.reason}.",
            kind="overloaded",
            status=503,
            payload=failure.log or None,
            hint="`fabric --serve --address 127.0.0.1:8080` in a terminal shows what it says.",
        )


def _too_slow(error: TransportError) -> bool:
    return error.kind == "timeout" and error.code != "connect_timeout"


def _free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"
