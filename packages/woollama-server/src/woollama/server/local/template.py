"""The chat template of the embedded default model."""

__all__ = ["CHATML"]

# The template inside SmolLM2's own file puts a system prompt about itself first, under which the
# 135M model babbles, and has no words for tools. The `<tool_call>` form is what the Hermes family
# of models was trained on; llama.cpp learns it from this text and reads calls back out of replies.
CHATML = r"""
{%- set turns = messages -%}
{%- set system = 'You are a helpful assistant.' -%}
{%- if messages and messages[0].role in ('system', 'developer') -%}
  {%- set system = messages[0].content -%}
  {%- set turns = messages[1:] -%}
{%- endif -%}
{{- '<|im_start|>system\n' + system -}}
{%- if tools -%}
  {{- '\n\nYou can call these functions:\n<tools>\n' -}}
  {%- for tool in tools -%}
    {{- tool | tojson + '\n' -}}
  {%- endfor -%}
  {{- '</tools>\n\nTo call one, write only this, once:\n<tool_call>\n' -}}
  {{- '{"name": "the name", "arguments": {"the": "arguments"}}\n</tool_call>' -}}
{%- endif -%}
{{- '<|im_end|>\n' -}}
{%- for message in turns -%}
  {%- if message.role == 'tool' -%}
    {{- '<|im_start|>user\n<tool_response>\n' + message.content -}}
    {{- '\n</tool_response><|im_end|>\n' -}}
  {%- else -%}
    {%- set role = 'system' if message.role == 'developer' else message.role -%}
    {{- '<|im_start|>' + role + '\n' -}}
    {%- if message.content -%}
      {{- message.content -}}
    {%- endif -%}
    {%- for call in message.tool_calls or [] -%}
      {{- '<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' -}}
      {{- call.function.arguments | tojson + '}\n</tool_call>' -}}
    {%- endfor -%}
    {{- '<|im_end|>\n' -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
  {{- '<|im_start|>assistant\n' -}}
{%- endif -%}
""".strip()
