"""The few options of curl that the pages use, for a machine without curl: a script.

``curl [-s] [-N] [-i] [-X METHOD] [-H HEADER] [-d BODY] [--unix-socket PATH] URL``
"""

import argparse
import socket
import sys
from http.client import HTTPConnection
from urllib.parse import urlsplit


class _Connection(HTTPConnection):
    """An HTTP connection that may go through a Unix socket."""

    def __init__(self, host: str, path: str | None) -> None:
        super().__init__(host, timeout=60)
        self._path = path

    def connect(self) -> None:
        if self._path is None:
            super().connect()
        else:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.connect(self._path)


def main(argv: list[str]) -> int:
    """One request; the exit code is curl's 7 when nobody answers."""
    parser = argparse.ArgumentParser(prog="curl")
    parser.add_argument("-s", "--silent", action="store_true")
    parser.add_argument("-N", "--no-buffer", action="store_true")
    parser.add_argument("-i", "--include", action="store_true")
    parser.add_argument("-X", "--request")
    parser.add_argument("-H", "--header", action="append", default=[])
    parser.add_argument("-d", "--data")
    parser.add_argument("--unix-socket")
    parser.add_argument("url")
    options = parser.parse_args(argv)
    parts = urlsplit(str(options.url))
    headers = dict(line.split(": ", 1) for line in options.header)
    if options.data is not None:
        names = {name.lower() for name in headers}
        if "content-type" not in names:
            headers["content-type"] = "application/x-www-form-urlencoded"
    method = options.request or ("GET" if options.data is None else "POST")
    connection = _Connection(parts.netloc, options.unix_socket)
    body = None if options.data is None else options.data.encode()
    try:
        connection.request(method, parts.path or "/", body, headers)
        reply = connection.getresponse()
        if options.include:
            sys.stdout.write(f"HTTP/1.1 {reply.status} {reply.reason}\n")
            sys.stdout.writelines(f"{name}: {value}\n" for name, value in reply.getheaders())
            sys.stdout.write("\n")
        sys.stdout.write(reply.read().decode())
    except OSError as error:
        sys.stderr.write(f"curl: (7) {error}\n")
        return 7
    finally:
        connection.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
