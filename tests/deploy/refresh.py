"""Writes the current output of the command to the examples; read the difference before you commit it."""

from __future__ import annotations

from .examples import EXAMPLES


def main() -> None:
    for example in EXAMPLES:
        example.expected.write_text(example.judged())
        example.readme.write_text(example.refreshed())


if __name__ == "__main__":
    main()
