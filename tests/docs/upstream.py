"""The servers that the pages talk about, as one: Chat Completions and Ollama's API on loopback.

It answers what a reader would see: *Paris.* to the question for the capital of France, *Hello!* to
a greeting, and so on. Standard library only.
"""

import json
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

_ANSWERS = {"capital of france": "Paris.", "hello": "Hello!", "count": "One, two, three."}
_MODELS = ("qwen3", "qwen3:8b", "nomic-embed-text")


def _answer(messages: Iterable[Mapping[str, Any]]) -> str:
    text = str(list(messages)[-1]["content"]).lower()
    return next((said for asked, said in _ANSWERS.items() if asked in text), "Yes.")


class _Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            models = [{"id": name, "object": "model", "created": 1} for name in _MODELS]
            self._json({"object": "list", "data": models})
        elif self.path == "/api/tags":
            self._json({"models": [{"name": name} for name in _MODELS]})
        else:
            self._json({"error": {"message": f"no route {self.path}"}}, status=404)

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        match self.path:
            case "/v1/chat/completions":
                self._chat(request)
            case "/api/chat":
                self._ollama(request)
            case "/v1/embeddings":
                data = [{"object": "embedding", "index": 0, "embedding": [0.25, -0.5, 1.0]}]
                usage = {"prompt_tokens": 2, "total_tokens": 2}
                body = {"object": "list", "model": request["model"], "data": data, "usage": usage}
                self._json(body)
            case _:
                self._json({"error": {"message": f"no route {self.path}"}}, status=404)

    def _chat(self, request: Mapping[str, Any]) -> None:
        text = _answer(request["messages"])
        head = {"id": "chatcmpl-1", "created": 1, "model": request["model"]}
        usage = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
        if not request.get("stream"):
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self._json({**head, "object": "chat.completion", "choices": [choice], "usage": usage})
            return
        deltas: list[tuple[dict[str, str], str | None]] = [
            ({"role": "assistant", "content": ""}, None),
            *(({"content": word}, None) for word in text.split(" ")),
            ({}, "stop"),
        ]
        chunks = [
            {
                **head,
                "object": "chat.completion.chunk",
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            }
            for delta, finish in deltas
        ]
        events = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
        self._send("".join([*events, "data: [DONE]\n\n"]).encode(), "text/event-stream")

    def _ollama(self, request: Mapping[str, Any]) -> None:
        text = _answer(request["messages"])
        head = {"model": request["model"], "created_at": "2026-11-30T00:00:00Z"}
        message = {"role": "assistant", "content": text}
        end = {"done": True, "done_reason": "stop", "prompt_eval_count": 9, "eval_count": 2}
        if request["stream"] is False:
            self._json({**head, "message": message, **end})
            return
        silent = {"role": "assistant", "content": ""}
        lines = [{**head, "message": message, "done": False}, {**head, "message": silent, **end}]
        body = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
        self._send(body, "application/x-ndjson")

    def _json(self, body: object, status: int = 200) -> None:
        self._send(json.dumps(body).encode(), "application/json", status)

    def _send(self, content: bytes, kind: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the test's output is the test's."""


@contextmanager
def serve_upstream() -> Generator[str]:
    """Serve on a free loopback port; gives ``127.0.0.1:PORT``."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Server)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
