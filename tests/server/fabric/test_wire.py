"""fabric's requests and its replies that come as one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.server.fabric.transcripts import TRANSCRIPTS, parts
from woollama.core.errors import ProviderError, ReplyError, RequestError
from woollama.server.fabric.faults import event_fault, reply_fault
from woollama.server.fabric.vendors import resolve_model
from woollama.server.fabric.wire import (
    ChatSettings,
    apply_request,
    chat_request,
    decode_models,
    decode_names,
    decode_text,
    names_request,
    path_like,
    pattern_request,
)

BASE = "http://127.0.0.1:8080"


def answer(name: str) -> bytes:
    return parts(TRANSCRIPTS[name]["answer"].encode())[2][0]


def test_a_run_says_its_temperature_always() -> None:
    """Left out it would be 0, whatever fabric's documentation says."""
    request = chat_request(
        BASE,
        pattern="summarize",
        input="hi",
        variables={},
        vendor="Ollama",
        model="llama3.2:latest",
    )
    prompt: dict[str, object] = {
        "userInput": "hi",
        "patternName": "summarize",
        "vendor": "Ollama",
        "model": "llama3.2:latest",
        "variables": {},
    }
    assert {"prompts": [prompt], "temperature": 0.7, "topP": 0.9} == json.loads(request.body)
    assert ("POST", f"{BASE}/chat") == (request.method, request.url)
    assert {"content-type": "application/json"} == request.headers


def test_every_setting_has_its_place() -> None:
    settings = ChatSettings(
        context="me",
        strategy="cot",
        language="de",
        search=True,
        search_location="Oslo",
        temperature=0.0,
        top_p=0.5,
        frequency_penalty=0.1,
        presence_penalty=0.2,
        thinking="high",
        context_length=8192,
    )
    request = chat_request(
        BASE, pattern="p", input="", variables={"a": "b"}, vendor="", model="m", settings=settings
    )
    body = json.loads(request.body)
    prompt = body.pop("prompts")[0]
    assert ("me", "cot", {"a": "b"}) == (
        prompt["contextName"],
        prompt["strategyName"],
        prompt["variables"],
    )
    assert {
        "language": "de",
        "search": True,
        "searchLocation": "Oslo",
        "temperature": 0.0,
        "topP": 0.5,
        "frequencyPenalty": 0.1,
        "presencePenalty": 0.2,
        "thinking": "high",
        "modelContextLength": 8192,
    } == body


def test_odd_names_are_one_segment_of_the_path() -> None:
    assert f"{BASE}/patterns/a%20b%3Fc%23d%25" == pattern_request(BASE, "a b?c#d%").url
    request = apply_request(BASE, "ü", input="x", variables={"k": "v"})
    assert f"{BASE}/patterns/%C3%BC/apply" == request.url
    assert {"input": "x", "variables": {"k": "v"}} == json.loads(request.body)
    assert ("GET", f"{BASE}/patterns/names") == (
        names_request(BASE).method,
        names_request(BASE).url,
    )


def test_names_are_read_and_null_is_none() -> None:
    assert ("summarize", "translate") == decode_names(answer("T1"))
    assert () == decode_names(b"[]")
    assert () == decode_names(b"null")


def test_names_that_are_paths_are_left_out() -> None:
    body = json.dumps(["a", "../b", "c/d", "~e", ".f", "g\\h", "", "a", "i..j"]).encode()
    assert ("a",) == decode_names(body)


@pytest.mark.parametrize("body", [b"<html>", b'{"error": "x"}', b"[1]", b'"x"', b"", b"\xff"])
def test_another_server_in_the_place_of_fabric_is_found_out(body: bytes) -> None:
    with pytest.raises(ReplyError, match="in the place of fabric"):
        decode_names(body)
    with pytest.raises(ReplyError):
        decode_text(body)


def test_a_pattern_is_read_as_it_is() -> None:
    assert "Translate to {{lang_code}}:\n\n{{input}}\n" == decode_text(answer("T3"))
    assert "Translate to es:\n\na {{b}} & c\n" == decode_text(answer("T5"))


def test_models_are_read_by_vendor_and_null_is_none() -> None:
    expected = {"Ollama": ("fail", "empty", "llama3.2:latest"), "OpenAI": ()}
    assert expected == decode_models(answer("T7")).vendors
    assert {"A": ()} == decode_models(b'{"models": null, "vendors": {"A": null}}').vendors
    assert {} == decode_models(b'{"models": null, "vendors": null}').vendors
    for body in (b"[]", b'{"vendors": [1]}', b"x"):
        with pytest.raises(ReplyError):
            decode_models(body)


# Errors


def test_p_43_a_missing_variable_under_500_is_the_callers_fault() -> None:
    """T6: a bare JSON string."""
    error = reply_fault("translate", 500, answer("T6"))
    assert isinstance(error, RequestError)
    assert (400, "variables.lang_code") == (error.status, error.param)
    assert "The pattern 'translate' needs a value for 'lang_code'." == error.message


def test_the_three_shapes_of_an_error() -> None:
    cases = {
        (401, answer("T2")): "fabric answered 401: Missing API Key",
        (500, answer("T4")): "fabric answered 500: pattern 'nope' not found. Run 'fabric -l' to "
        "see available patterns",
        (400, answer("T11")): "fabric answered 400: invalid request format: json: cannot unmarshal "
        "string into Go struct field ChatRequest.prompts of type []restapi.PromptRequest",
        (404, b"404 page not found"): "fabric answered 404: 404 page not found",
        (
            502,
            b"<html><h1>Bad gateway",
        ): "fabric answered 502: a web page, not an answer of fabric's",
        (500, b""): "fabric answered 500: nothing more",
    }
    for (status, body), message in cases.items():
        error = reply_fault("p", status, body)
        assert isinstance(error, ProviderError)
        assert (message, status) == (error.message, error.status)


def test_a_refused_key_says_where_it_goes() -> None:
    error = reply_fault(None, 401, answer("T2"))
    assert ("authentication", 401) == (error.kind, error.status)
    assert "api_key_env" in str(error)


def test_a_redirect_is_no_answer() -> None:
    assert 502 == reply_fault(None, 301, b"").status


def test_long_errors_are_cut_and_keep_their_whole_text() -> None:
    error = event_fault("p", "Error: " + "x" * 5000)
    assert len(error.message) < 600
    assert 5007 == len(str(error.payload))


# Models

VENDORS = {
    "Ollama": ("llama3.2:latest",),
    "OpenAI": ("gpt-5",),
    "LM Studio": ("qwen",),
    "OpenRouter": ("meta-llama/llama-3",),
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ollama/llama3.2:latest", ("Ollama", "llama3.2:latest")),
        ("OPENAI/gpt-5", ("OpenAI", "gpt-5")),
        ("lmstudio/qwen", ("LM Studio", "qwen")),
        ("lm-studio/qwen", ("LM Studio", "qwen")),
        ("openrouter/meta-llama/llama-3", ("OpenRouter", "meta-llama/llama-3")),
        ("Meta-Llama/llama-3", ("OpenRouter", "Meta-Llama/llama-3")),
        ("Ollama|llama3.2:latest", ("Ollama", "llama3.2:latest")),
        ("openai|a/b", ("OpenAI", "a/b")),
        ("nobody/x", ("nobody", "x")),
        ("nobody|x", ("nobody", "x")),
        ("llama3.2:latest", ("", "llama3.2:latest")),
    ],
)
def test_a_models_name_is_split_as_fabric_needs_it(name: str, expected: tuple[str, str]) -> None:
    assert expected == resolve_model(name, VENDORS)


def test_without_a_list_the_prefix_is_the_vendor() -> None:
    assert ("ollama", "x") == resolve_model("ollama/x", {})


@given(st.text(max_size=6))
def test_what_is_no_path_stays_in_its_folder(name: str) -> None:
    if not path_like(name):
        assert "/" not in name
        assert "\\" not in name
        assert name not in {"", ".", ".."}
        assert name[0] not in "~."
