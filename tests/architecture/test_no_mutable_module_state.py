"""RU-2: the core has no state in its modules, but for the façade's default transport."""

import ast
import collections
import contextvars
import functools
import importlib
import itertools
import pkgutil
import threading
import types
import weakref
from pathlib import Path

import pytest

import woollama.core

ALLOWED = {"woollama.core.transport.default", "woollama.core.transport.http"}

MUTABLE: tuple[type[object], ...] = (
    bytearray,
    collections.ChainMap,
    collections.deque,
    contextvars.ContextVar,
    dict,
    itertools.count,
    list,
    set,
    threading.local,
    type(threading.Lock()),
    type(threading.RLock()),
    types.SimpleNamespace,
    weakref.WeakKeyDictionary,
    weakref.WeakSet,
    weakref.WeakValueDictionary,
    type(functools.cache(len)),
)


def modules() -> list[str]:
    walked = pkgutil.walk_packages(woollama.core.__path__, "woollama.core.")
    return sorted({"woollama.core", *(found.name for found in walked)} - ALLOWED)


def is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def is_ours(value: object) -> bool:
    # A cached function that was only imported is the standard library's own.
    owner = getattr(value, "__module__", None)
    return not isinstance(owner, str) or owner.startswith("woollama.")


@pytest.mark.parametrize("name", modules())
def test_ru_2_a_module_holds_no_mutable_value(name: str) -> None:
    module = importlib.import_module(name)
    found = {
        key: type(value).__name__
        for key, value in vars(module).items()
        if not is_dunder(key) and isinstance(value, MUTABLE) and is_ours(value)
    }
    assert {} == found, "make it a tuple, a frozenset or a MappingProxyType"


@pytest.mark.parametrize("name", modules())
def test_ru_2_a_class_holds_no_mutable_value(name: str) -> None:
    module = importlib.import_module(name)
    found = {
        f"{owner.__name__}.{key}": type(value).__name__
        for owner in vars(module).values()
        if isinstance(owner, type) and owner.__module__ in (name, "woollama.core")
        for key, value in vars(owner).items()
        if not is_dunder(key) and not key.startswith("_abc_") and isinstance(value, MUTABLE)
    }
    assert {} == found


@pytest.mark.parametrize("name", modules())
def test_ru_2_no_function_rebinds_a_global(name: str) -> None:
    path = importlib.import_module(name).__file__
    assert path is not None
    tree = ast.parse(Path(path).read_text("utf-8"))
    found = [(node.lineno, node.names) for node in ast.walk(tree) if isinstance(node, ast.Global)]
    assert found == []
