"""What `woollama.core` offers: every name exists, is documented and says where it is found."""

import importlib
import inspect
import pkgutil

import pytest

import woollama.core


def packages_and_modules() -> list[str]:
    return sorted(
        found.name for found in pkgutil.walk_packages(woollama.core.__path__, "woollama.core.")
    )


@pytest.mark.parametrize("name", woollama.core.__all__)
def test_a_public_name_exists_and_is_documented(name: str) -> None:
    value = getattr(woollama.core, name)
    if inspect.isclass(value) or inspect.isroutine(value):
        assert inspect.getdoc(value), f"{name} has no docstring"
        assert vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
        assert value.__module__ == "woollama.core"


def test_public_names_are_listed_once_and_sorted_for_a_reader() -> None:
    names = list(woollama.core.__all__)
    assert len(set(names)) == len(names)


def test_a_star_import_gives_the_public_names_only() -> None:
    namespace: dict[str, object] = {}
    exec("from woollama.core import *", namespace)
    assert set(woollama.core.__all__) == set(namespace) - {"__builtins__"}


@pytest.mark.parametrize("name", packages_and_modules())
def test_what_a_module_lists_it_has(name: str) -> None:
    module = importlib.import_module(name)
    missing = [public for public in getattr(module, "__all__", ()) if not hasattr(module, public)]
    assert missing == []


@pytest.mark.parametrize("name", packages_and_modules())
def test_no_module_bears_the_name_of_what_it_exports(name: str) -> None:
    module = importlib.import_module(name)
    own = name.rpartition(".")[2]
    assert not inspect.isroutine(getattr(module, own, None))
    assert not inspect.isclass(getattr(module, own, None))


def test_the_facade_says_that_it_is_ours() -> None:
    assert woollama.core.__woollama__ == "router"
