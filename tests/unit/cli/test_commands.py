"""Commands: one file each, all of them in the help."""

from pathlib import Path

from mixedgm.cli import commands
from tests.support.command_line import command_names


def test_every_file_is_a_command_in_the_order_of_the_help():
    assert command_names() == list(commands.NAMES)
    files = Path(commands.__file__).parent.glob("*.py")
    assert {file.stem for file in files} == {"__init__", *commands.NAMES}
