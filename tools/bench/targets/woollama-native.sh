#!/bin/sh
#: model = bench/{}
# Our server, translating Ollama's own protocol (NDJSON) to Chat Completions.
WOOLLAMA_PROVIDER="provider = \"ollama\"
base_url = \"http://127.0.0.1:$UPSTREAM\""
. "$TARGETS/woollama.sh"
