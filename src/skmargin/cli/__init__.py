"""The ``skmargin`` command."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command; without its optional packages it says what to install."""
    try:
        from ._app import app
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] not in ("typer", "rich", "click"):
            raise
        sys.exit(f"The skmargin command needs the package {error.name}: pip install 'skmargin[cli]'")
    except KeyboardInterrupt:  # while the packages are loaded; later the commands see to it
        sys.exit(130)
    for stream in (sys.stdout, sys.stderr):  # a name that the terminal cannot show must not end the program
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="skmargin")
