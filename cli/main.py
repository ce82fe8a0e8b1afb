"""The group of all commands, their exit status and one-line errors."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from io import TextIOWrapper
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn, TextIO, cast

import click

from nfsgeo.errors import COMMAND, UserError, option
from nfsgeo.version import __version__
from nfsgeo_cli.terminal import options_of

# The module of each verb, in the order of a workflow.
VERBS = {
    **{"train": "train", "evaluate": "evaluate", "predict": "predict"},
    **{"calibrate": "evaluate", "export": "predict", "plot": "plot"},
    **{"compare": "plot", "generate": "generate", "convert": "convert"},
    **{"info": "info", "models": "listings", "datasets": "listings"},
    **{"tune": "tune", "bench": "bench"},
}
# Options that take one source of data, and their arguments.
SOURCES = {"--data": "data", "--test-file": "test_file", "--input": "source"}
USER_ERROR, DEFECT, INTERRUPTED = 2, 1, 130
# Signals that end a command as Ctrl-C does; clusters send the last two beforehand.
ENDING = signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1


class OneLineErrors(click.Group):
    """A group whose commands exit 2 with one line on stderr for user errors.

    These include a full disk, limits of the system, a lack of permissions and running
    out of device memory. Ctrl-C and the signals :data:`ENDING` exit 130, and what is
    half-written is removed; anything else is a defect, with exit status 1 and a
    traceback. What a closed or broken stream cannot take is dropped.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order of a workflow, not of the alphabet

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **_: Any
    ) -> NoReturn:
        if threading.current_thread() is threading.main_thread():
            for number in ENDING:
                ignored = signal.getsignal(number) is signal.SIG_IGN
                if number != signal.SIGHUP or not ignored:  # as by nohup
                    signal.signal(number, signal.default_int_handler)
        before = COMMAND.set({})
        _open_streams()
        for stream in (sys.stdout, sys.stderr):  # names may be of any bytes
            if isinstance(stream, TextIOWrapper):  # not in a notebook
                stream.reconfigure(errors="backslashreplace")
        try:
            with _unbroken_stdout():
                status = super().main(args, prog_name, standalone_mode=False)
        except click.Abort:
            sys.exit(INTERRUPTED)
        except Exception as error:
            words = sys.argv[1:] if args is None else [*args]
            message = _user_error(_extra_names(error, words) or error)
            with suppress(OSError):
                if message:
                    click.secho("Error: ", fg="red", bold=True, nl=False, err=True)
                    click.echo(" ".join(message.split()), err=True)
                else:
                    traceback.print_exc()
            sys.exit(USER_ERROR if message else DEFECT)
        finally:
            COMMAND.reset(before)
        sys.exit(status if isinstance(status, int) else 0)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        COMMAND.set(options_of(command) if command else {})
        return name, command, rest

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            with suppress(OSError):  # the terminal may be gone
                click.echo(err=True)
            raise click.Abort from None


@contextmanager
def _unbroken_stdout() -> Iterator[None]:
    """Write to stdout as long as it has a reader."""
    before = sys.stdout
    sys.stdout = cast(TextIO, stream := Unbroken(before))
    try:
        yield
    finally:
        stream.flush()
        sys.stdout = before


class Unbroken:
    """A stream of text that drops what a reader that has gone would have read."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with self._dropping():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._dropping():
            self._stream.flush()

    @contextmanager
    def _dropping(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _open_streams() -> None:
    """Give closed streams a place, which the next file to be opened would take."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


def _user_error(error: Exception) -> str:
    """The message of a user error, empty for a defect."""
    if isinstance(error, click.UsageError) and error.ctx is not None:
        help_text = f"; see {error.ctx.command_path} --help"
        return error.format_message().rstrip(".") + help_text
    from nfsgeo.files import exhausted  # numpy and h5py, for which help does not wait

    error = exhausted(error) or error
    if isinstance(error, UserError | click.ClickException):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None:
        name, reason = error.filename, error.strerror
        return f"{name} ({reason}): expected a usable path; choose another"
    return ""


def _extra_names(error: Exception, words: Sequence[str]) -> UserError | None:
    """Return a clearer error if an option of one file is followed by several.

    A shell writes them in place of a pattern without quotation marks.
    """
    if not str(error).startswith("Got unexpected extra argument"):
        return None
    for flag in SOURCES.keys() & {*words}:
        rest = words[words.index(flag) + 1 :]
        names = [*takewhile(lambda word: not word.startswith("-"), rest)]
        if len(names) > 1:
            pattern = f"{os.path.commonprefix(names)}*{Path(names[0]).suffix}"
            given = f"{flag} with {len(names)} names, from {names[0]} to {names[-1]}"
            expected = "one file or folder, or a pattern in quotation marks"
            todo = f"give for example {option(SOURCES[flag], pattern)}"
            return UserError(given, expected, todo)
    return None


@click.group(
    cls=OneLineErrors,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
@click.version_option(__version__, prog_name="nfsgeo")
@click.pass_context
def main(context: click.Context) -> None:
    """Learn solution operators of PDEs on irregular points.

    `nfsgeo train` needs no data to begin with. `nfsgeo COMMAND --help` shows examples.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for verb, module in VERBS.items():
    main.add_command(getattr(import_module(f"nfsgeo_cli.{module}"), verb))
