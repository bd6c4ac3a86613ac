"""Where the daemon listens: a TCP address and a Unix socket, made before anything else is started.

Whatever is wrong is one clear line and an exit code, and nothing of another daemon is touched.
"""

import errno
import socket
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from woollama.core.canonical.value import Value
from woollama.server.address import Address, is_address, is_loopback
from woollama.server.settings import Settings
from woollama.server.unix_socket import (
    AlreadyServed,
    NoSocket,
    SocketFile,
    default_place,
    open_socket,
    write_address,
)

__all__ = ["BACKLOG", "BindError", "Binding", "open_binding"]

BACKLOG = 4096

EXIT_TAKEN = 69  # EX_UNAVAILABLE
EXIT_NOT_ALLOWED = 77  # EX_NOPERM
EXIT_CONFIG = 78  # EX_CONFIG


class BindError(Exception):
    """The daemon cannot listen as it was told; the message is one line for a person.

    Attributes:
        exit_code: 69 the place is taken, 77 the system does not allow it, 78 it is asked wrongly.
    """

    def __init__(self, message: str, *, exit_code: int) -> None:
        """Both are shown by the command line."""
        super().__init__(message)
        self.exit_code = exit_code


class Binding(Value, frozen=True, kw_only=True):
    """The listening sockets of one daemon; connections wait in them until a runner serves them.

    Attributes:
        sockets: all of them, the TCP one first.
        address: the TCP address, with the port that it really has.
        uds: the Unix socket's path; None when there is none.
        address_file: the file beside it that holds the address; None when there is none.
        notices: what a person should know, one line each.
    """

    sockets: tuple[socket.socket, ...]
    address: Address
    uds: Path | None = None
    address_file: Path | None = None
    notices: tuple[str, ...] = ()


@contextmanager
def open_binding(settings: Settings, environ: Mapping[str, str]) -> Generator[Binding]:
    """Listens as the settings say; on leaving, closes and removes what it made.

    Args:
        settings: ``server.address``, ``server.uds`` and the token count.
        environ: for ``XDG_RUNTIME_DIR``.

    Raises:
        BindError: the port is taken, a living daemon answers on the socket, the address is none of
            this machine, or it is not loopback and there is no token.
    """
    address = _checked(settings)
    sockets: list[socket.socket] = []
    files: list[SocketFile] = []
    notices: list[str] = []
    try:
        # The Unix socket first: it is what tells that another daemon of this user is alive.
        uds = _bind_unix(settings, environ, notices)
        if uds is not None:
            sockets.append(uds[0])
            files.append(uds[1])
        tcp = _bind_tcp(address)
        sockets.insert(0, tcp)
        real = Address(host=address.host, port=tcp.getsockname()[1])
        if uds is not None:
            with _noticing(notices, "no address file"):
                files.append(write_address(uds[1].path.with_suffix(".addr"), real))
        yield Binding(
            sockets=tuple(sockets),
            address=real,
            uds=files[0].path if files else None,
            address_file=files[1].path if len(files) > 1 else None,
            notices=tuple(notices),
        )
    finally:
        for file in files:
            file.remove()
        for each in sockets:
            each.close()


def _checked(settings: Settings) -> Address:
    address = settings.server.listen
    if not is_loopback(address.host) and settings.token is None:
        raise BindError(
            f"{address} can be reached from other machines, so it needs a token: set "
            "WOOLLAMA_TOKEN, or listen on 127.0.0.1",
            exit_code=EXIT_CONFIG,
        )
    return address


def _bind_unix(
    settings: Settings, environ: Mapping[str, str], notices: list[str]
) -> tuple[socket.socket, SocketFile] | None:
    told = settings.server.uds
    if told is False:
        return None
    place = Path()
    try:
        place = default_place(environ) if told is True else _absolute(told, settings)
        return open_socket(place, backlog=BACKLOG)
    except AlreadyServed:
        raise BindError(
            f"a woollama already listens on {place}; stop it, or give this one another socket "
            "with --uds (a path, or off)",
            exit_code=EXIT_TAKEN,
        ) from None
    except NoSocket as error:
        if told is not True:
            message = f"no Unix socket at {told}: {error}"
            raise BindError(message, exit_code=EXIT_CONFIG) from error
        notices.append(f"no Unix socket, TCP only: {error}")
        return None


def _absolute(path: str, settings: Settings) -> Path:
    # A path that is not absolute starts where the file stands that names it.
    return settings.config_dir / Path(path).expanduser()


@contextmanager
def _noticing(notices: list[str], what: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        notices.append(f"{what}: {error.strerror}")


def _bind_tcp(address: Address) -> socket.socket:
    host = _resolve(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, the event loops turn Nagle's algorithm off on what is accepted.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if sys.platform == "win32":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if family == socket.AF_INET6:
            # "::" is every address, those of IPv4 included.
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if host == "::" else 1)
        made.bind((host, address.port))
        # Two sockets may be bound to one port as long as neither listens.
        made.listen(BACKLOG)
        made.setblocking(False)
    except OSError as error:
        made.close()
        raise _explained(error, address) from error
    return made


def _resolve(address: Address) -> str:
    if is_address(address.host):
        return address.host
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # the latter: a name that no name may be
        raise _unknown(address) from error
    hosts = [str(place[0]) for family, *_, place in found if family == socket.AF_INET]
    hosts += [str(place[0]) for family, *_, place in found if family == socket.AF_INET6]
    if not hosts:
        raise _unknown(address)
    return hosts[0]


def _unknown(address: Address) -> BindError:
    message = f"{address.host!r} is no address of this machine; 127.0.0.1 is"
    return BindError(message, exit_code=EXIT_CONFIG)


def _explained(error: OSError, address: Address) -> BindError:
    if error.errno == errno.EADDRINUSE:
        return BindError(
            f"{address} is already in use by another program; stop it, or choose another port "
            "with --port (0 takes a free one)",
            exit_code=EXIT_TAKEN,
        )
    if error.errno == errno.EACCES:
        message = f"not allowed to listen on {address}; choose a port of 1024 or above"
        return BindError(message, exit_code=EXIT_NOT_ALLOWED)
    if error.errno == errno.EADDRNOTAVAIL:
        return _unknown(address)
    return BindError(f"cannot listen on {address}: {error.strerror}", exit_code=EXIT_TAKEN)
