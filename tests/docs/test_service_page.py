"""The unit for systemd starts a command that there is."""

import configparser
import shlex

import pytest
from click.testing import CliRunner

from tests.docs.blocks import Block, blocks_of
from woollama.server.cli.commands import woollama
from woollama.server.cli.failures import EXIT_CONFIG

PAGE = "docs/howto/run-as-a-service.md"


@pytest.fixture
def unit() -> configparser.ConfigParser:
    def is_unit(block: Block) -> bool:
        return block.title == "woollama.service"

    (block,) = filter(is_unit, blocks_of(PAGE))
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(block.text)
    return parser


def test_the_unit_starts_a_command_that_there_is(unit: configparser.ConfigParser) -> None:
    program, *arguments = shlex.split(unit["Service"]["ExecStart"])
    assert program.endswith("/bin/woollama")
    done = CliRunner().invoke(woollama, [*arguments, "--help"])
    assert 0 == done.exit_code, done.output


def test_the_unit_does_not_start_again_what_is_configured_wrongly(
    unit: configparser.ConfigParser,
) -> None:
    assert str(EXIT_CONFIG) == unit["Service"]["RestartPreventExitStatus"]
