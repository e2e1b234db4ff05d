"""The `farpath` command: the same as the program's, and `farpath sweep --cluster`."""

import sys

from . import _farpath


def main() -> int:
    arguments = sys.argv[1:]
    if arguments[:1] == ["sweep"] and any(argument.startswith("--cluster") for argument in arguments):
        from .cluster import main

        return main(arguments[1:])
    return _farpath.main(["farpath", *arguments])


if __name__ == "__main__":
    sys.exit(main())
