#!/bin/sh
#: header = Authorization: Bearer sk-bench-0123456789abcdef0123456789abcdef
#: wait_s = 120
# LiteLLM's proxy at its leanest: one worker, a master key of this script's own, no database;
# callbacks, documentation pages, retries, cool-downs and telemetry off.
{
  echo "model_list:"
  for name in chat stream-200-0ms stream-50-100ms; do
    echo "  - model_name: $name"
    echo "    litellm_params:"
    echo "      {model: openai/$name, api_base: 'http://127.0.0.1:$UPSTREAM/v1', api_key: x}"
  done
  cat <<'CONF'
litellm_settings:
  telemetry: false
  set_verbose: false
  drop_params: false
  num_retries: 0
  request_timeout: 120
  turn_off_message_logging: true
general_settings: {disable_spend_logs: true, disable_error_logs: true, background_health_checks: false}
router_settings: {disable_cooldowns: true, num_retries: 0}
CONF
} > "$STATE/config.yaml"
export LITELLM_MASTER_KEY=sk-bench-0123456789abcdef0123456789abcdef
export LITELLM_LOG=ERROR LITELLM_MODE=PRODUCTION LITELLM_LOCAL_MODEL_COST_MAP=True
export LITELLM_TELEMETRY=False LITELLM_NUM_RETRIES=0 LITELLM_DONT_SHOW_FEEDBACK_BOX=true
export DISABLE_ADMIN_UI=True NO_DOCS=True NO_REDOC=True DO_NOT_TRACK=1
export OTEL_SDK_DISABLED=true DISABLE_SCHEMA_UPDATE=true
cd "$STATE" && exec "$BENCH_HOME/litellm/bin/litellm" --config "$STATE/config.yaml" \
  --host 127.0.0.1 --port "$PORT" --num_workers 1 --telemetry False
