"""Errors that the person at the keyboard can mend."""

from __future__ import annotations

from importlib import import_module

__all__ = ["TooLarge", "UserError", "require"]


class UserError(ValueError):
    """Input that cannot be used as it is.

    The message is one line: what was given, what was expected, what to do. The
    command line prints it and exits with status 2; a library caller catches a
    ``ValueError``.

    Args:
        given: The value that was given, for example ``"--points 9000"``.
        expected: Values that would have been accepted.
        todo: Advice to the user.
    """

    def __init__(self, given: str, expected: str, todo: str) -> None:
        self.given, self.expected, self.todo = given, expected, todo
        message = f"{given}: expected {expected}; {todo}"
        super().__init__(" ".join(message.splitlines()))  # names of files may have some

    def __reduce__(self) -> tuple[type[UserError], tuple[str, str, str]]:
        # Crosses process boundaries (data-loader workers) with all three parts.
        return type(self), (self.given, self.expected, self.todo)


class TooLarge(UserError):
    """Raised before an allocation that would not fit into memory."""


def require(package: str, what: str, extra: str = "formats") -> None:
    """Makes sure that a package is installed.

    Args:
        package: Its name, as it is imported.
        what: The feature that needs it, for the message.
        extra: The extra of nfsgeo that installs it.

    Raises:
        UserError: It is not installed.
    """
    try:
        import_module(package)
    except ImportError as error:
        raise UserError(what, package, f"pip install 'nfsgeo[{extra}]'") from error
