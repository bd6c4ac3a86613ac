#!/bin/sh
#: model = bench/{}
# Our server run by uvicorn instead of Hypercorn.
WOOLLAMA_ARGS="--server uvicorn"
. "$TARGETS/woollama.sh"
