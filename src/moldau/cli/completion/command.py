"""`moldau completion`: the script that teaches a shell to complete our command lines."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from moldau.cli.completion.answering import SCRIPTS
from moldau.cli.failures import OK
from moldau.cli.parsing import Parser

SHELLS = ("bash", "zsh", "fish")
EXAMPLES = """\
For this session:
  bash   eval "$(moldau completion bash)"
  zsh    eval "$(moldau completion zsh)"
  fish   moldau completion fish | source

For all that come:
  bash   the line above in ~/.bashrc; with the package bash-completion also
         moldau completion bash > ~/.local/share/bash-completion/completions/moldau
  zsh    moldau completion zsh > DIR/_moldau    with DIR in $fpath, before compinit; or the line above in ~/.zshrc
  fish   moldau completion fish > ~/.config/fish/completions/moldau.fish

It completes commands, options and their values, profiles, configs, files, and what the cluster has: topics,
partitions, groups, brokers, users, transactional ids. The cluster is the one that the line names (-b, --profile and
others), or the usual one; it has a second to answer, and what it said is used for five.
"""


def main(arguments: list[str]) -> int:
    parser = Parser(prog="moldau completion", description="Print a shell's script for completion.", epilog=EXAMPLES)
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))
    shell = parser.parse_args(arguments).shell
    print(script(shell), end="")
    return OK


def script(shell: str) -> str:
    """It asks this installation, whatever `moldau` is found first when Tab is pressed."""
    text = (Path(__file__).parent / "scripts" / f"moldau.{shell}").read_text(encoding="utf-8")
    asking = shlex.join([sys.executable, "-m", "moldau", "complete-line", shell])
    return text.replace("@ASK@", asking).replace("@NAMES@", " ".join(["moldau", *SCRIPTS]))
