# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line of the package, `python -m nm_sparse COMMAND`.

Exit codes: 0 where all is well, 1 for a failure, with one sentence that says which, 2
for a wrong command line, 3 where a command needs a GPU and there is none.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Optional, Sequence

from .. import __version__
from . import advise, bench, convert, explain, inspect, prune, tune
from .common import FAILURE, USAGE, CommandError

COMMANDS = (convert, prune, inspect, explain, advise, bench, tune)


def make_parser() -> argparse.ArgumentParser:
    """The parser of all commands; `run` of its result is the function to call."""
    parser = argparse.ArgumentParser(
        prog="python -m nm_sparse",
        description="N:M-sparse weights: prune, pack and look at them, and ask the "
        "compiler about their products.",
    )
    parser.add_argument(
        "--version", action="version", version=f"nm_sparse {__version__}"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in COMMANDS:
        module.add_parser(commands)
    return parser


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs a command; `arguments` are those of the process by default. Returns the exit
    code, and raises SystemExit for a wrong command line and for --help."""
    args = make_parser().parse_args(arguments)
    try:
        return int(args.run(args))
    except BrokenPipeError:
        # Whoever read the output has enough of it. So has the interpreter at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except CommandError as error:
        message, code = str(error), error.code
    except (ValueError, OSError, ImportError, RuntimeError, MemoryError) as error:
        # The compiler says of itself whether an option or the program is wrong.
        message = str(error) or type(error).__name__
        code = USAGE if getattr(error, "status", FAILURE) == USAGE else FAILURE
    except KeyboardInterrupt:
        message, code = "interrupted; nothing is written", FAILURE
    print(f"nm_sparse {args.command}: {message}", file=sys.stderr)
    return code
