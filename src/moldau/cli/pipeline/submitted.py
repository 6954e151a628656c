"""The program that spark-submit starts: `moldau pipeline` with its arguments, on the Spark that it was submitted to."""

from __future__ import annotations

import sys

from moldau.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["pipeline", *sys.argv[1:]]))
