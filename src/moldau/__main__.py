"""`python -m moldau` is the `moldau` command."""

from __future__ import annotations

import sys


def main() -> int:
    from moldau.cli.main import main as command_line

    return command_line(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
