"""Results of commands that are run in this process."""

from click.testing import Result


def refused(result: Result, *words: str) -> None:
    """Exit 2, nothing on stdout, one line on stderr with the given words."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    for word in words:
        assert word in line
