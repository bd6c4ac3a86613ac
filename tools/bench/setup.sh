#!/bin/sh
# Install what the speed comparison needs beside this project, under $BENCH_HOME
# (default ${TMPDIR:-/tmp}/woollama-bench). LiteLLM has a virtual environment of its own.
# Usage: setup.sh [nginx] [litellm]     (no words: both; some minutes)
set -eu
BENCH_HOME=${BENCH_HOME:-${TMPDIR:-/tmp}/woollama-bench}
mkdir -p "$BENCH_HOME"
WORDS="$*"

want() {
  [ -z "$WORDS" ] && return 0
  case " $WORDS " in *" $1 "*) return 0 ;; *) return 1 ;; esac
}

# The proxy extra of LiteLLM pins releases of its database and licence packages that are not to be
# had; neither serves a request, so the extra is spelled out here without those pins.
if want litellm; then
  [ -x "$BENCH_HOME/litellm/bin/python" ] || python3 -m venv "$BENCH_HOME/litellm"
  "$BENCH_HOME/litellm/bin/pip" install -q --disable-pip-version-check \
    'litellm==1.110.2' 'litellm-proxy-extras==0.4.110' litellm-enterprise \
    'gunicorn>=23,<24' 'uvicorn<1' 'granian<3' 'uvloop<1' 'fastapi<1' 'starlette<2' 'backoff<3' \
    'rq<3' 'orjson<4' 'hiredis<4' 'apscheduler<4' 'fastapi-sso<1' 'pyjwt<3' 'python-multipart<1' \
    'cryptography>=49,<51' 'pynacl<2' 'websockets>=15.0.1,<16' 'azure-identity<2' \
    'azure-storage-blob<13' 'mcp>=2.3,<3' 'httpx2<3' 'restrictedpython>=8.5,<9' 'rich>=13.9.4,<14' \
    'inquirerpy<1' 'tomlkit<1' 'polars<2' 'soundfile<1' 'expression<6' 'backports-zstd<2' \
    'semver<4' 'pyroscope-io<2'
fi

# Debian and its children. Elsewhere: put an nginx (1.18 or later) on PATH.
if want nginx && ! command -v nginx >/dev/null; then
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends nginx-light
fi
