#!/bin/sh
#: model = bench/{}
# Our server with default settings (Hypercorn), the mock its one configured provider.
# Variants set WOOLLAMA_PROVIDER (lines of its table) and WOOLLAMA_ARGS, and source this script.
[ -n "${WOOLLAMA_PROVIDER:-}" ] || WOOLLAMA_PROVIDER="base_url = \"http://127.0.0.1:$UPSTREAM/v1\""
printf '[inferencers.bench]\n%s\n' "$WOOLLAMA_PROVIDER" > "$STATE/inferencers.toml"
export WOOLLAMA_CONFIG_DIR="$STATE" XDG_RUNTIME_DIR="$STATE"
cd "$STATE" || exit 1
exec "$WOOLLAMA_BIN" serve --port "$PORT" ${WOOLLAMA_ARGS:-}
