#!/bin/sh
#: model = bench/{}
# Our server, every reply decoded and encoded again though both sides speak Chat Completions.
WOOLLAMA_PROVIDER="base_url = \"http://127.0.0.1:$UPSTREAM/v1\"
relay = false"
. "$TARGETS/woollama.sh"
