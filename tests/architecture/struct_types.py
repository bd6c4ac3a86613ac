"""Makes a decoder of every struct of both distributions, and ends; run by a test."""

import contextlib
import importlib
import inspect
import pkgutil

import msgspec

import woollama.core
import woollama.server

# Programs, and what needs pytest.
SKIPPED = ("__main__", "local.child", "pytest_plugin")


def main() -> int:
    """How many there are."""
    count = 0
    for package in (woollama.core, woollama.server):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if found.name.endswith(SKIPPED):
                continue
            module = importlib.import_module(found.name)
            for value in vars(module).values():
                if inspect.isclass(value) and issubclass(value, msgspec.Struct):
                    # Some hold what is no JSON and are never decoded.
                    with contextlib.suppress(TypeError, NameError):
                        msgspec.json.Decoder(value)
                        count += 1
    return count


print(main())  # noqa: T201 - its result
