"""The program of the child process: llama.cpp's server on a loopback port of its own choice.

It is run as a script, so that it need not import the server that starts it:

1. it reads one line of JSON from stdin, the settings of ``launch.py``, the key among them;
2. it loads the model and prints one line of JSON to stdout: ``{"address": "http://127.0.0.1:…"}``,
   or ``{"error": "…"}`` and ends with exit code 1;
3. it serves until its stdin ends.

Everything else that it or llama.cpp writes goes to stderr.
"""

import importlib
import json
import os
import sys
from typing import Any

_PROMPT_CACHE_MIB = 256
"""llama.cpp keeps the computed state of earlier prompts; its default is 8 GiB."""
_VERBOSITY_WARNINGS = 2


def main() -> None:
    """Serve one model; the module's docstring has the protocol."""
    # llama.cpp may print to descriptor 1, where a reader waits for our one line.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    settings: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    try:
        server = _open_server(settings)
    except (ImportError, RuntimeError, OSError) as error:
        print(json.dumps({"error": str(error)}), file=answer, flush=True)
        # llama.cpp writes its log in a thread of its own, and says there what is wrong with the
        # file: only the ordinary way out waits until that is written.
        sys.exit(1)
    print(json.dumps({"address": server.listening_address}), file=answer, flush=True)
    sys.stdin.buffer.read()
    # The server's own way out waits for the reply in hand; whoever wanted it is gone.
    os._exit(0)


def _open_server(settings: dict[str, Any]) -> Any:
    # Imported here so that its absence is reported like any other fault; it declares no types.
    xllamacpp: Any = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.model_alias = {settings["alias"]}
    params.n_ctx = settings["context"]
    params.n_parallel = settings["parallel"]
    params.cpuparams.n_threads = settings["threads"]
    params.cpuparams_batch.n_threads = settings["threads"]
    params.cache_ram_mib = _PROMPT_CACHE_MIB
    params.verbosity = _VERBOSITY_WARNINGS
    params.warmup = False
    # What does not fit on a graphics card is worked out by reading the model once more: 0.2 s that
    # a machine without one need not spend.
    cpu = xllamacpp.ggml_backend_dev_type.GGML_BACKEND_DEVICE_TYPE_CPU
    params.fit_params = any(device["type"] != cpu for device in xllamacpp.get_device_info())
    if settings["template"] is not None:
        params.chat_template = settings["template"]
    if settings["temperature"] is not None:
        params.sampling.temp = settings["temperature"]
    if settings["max_tokens"] is not None:
        params.n_predict = settings["max_tokens"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [settings["key"]]
    params.cors_origins = ""
    params.cors_credentials = False
    params.ui = False
    params.endpoint_slots = False
    # Nothing is fetched: a model that is not there is an error.
    params.offline = True
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
