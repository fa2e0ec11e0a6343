"""`halfcard completion`: prints what a shell needs to complete commands, options and their values.

A shell asks `halfcard __complete WORD...`, as it asks kubectl, and gets one candidate a line, with its meaning after a
tab. No candidate means a file name.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from halfcard.exit_codes import EXIT_OK

from .command_tree import actions, options, subcommands, summaries

HIDDEN: Final = "__complete"
"""The name of the command that shells call; kubectl's is the same."""

_BASH: Final = """\
_halfcard() {
    local IFS=$'\\n'
    COMPREPLY=($(halfcard __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -o default -F _halfcard halfcard
"""

_ZSH: Final = """\
#compdef halfcard
_halfcard() {
    local -a found
    found=("${(@f)$(halfcard __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n $found[1] ]]; then
        found=("${(@)found//:/\\\\:}")
        found=("${(@)found/$'\\t'/:}")
        _describe halfcard found
    else
        _files
    fi
}
if [[ $funcstack[1] == _halfcard ]]; then _halfcard "$@"; else compdef _halfcard halfcard; fi
"""

_FISH: Final = """\
function __halfcard_candidates
    set -l found (halfcard __complete (commandline -opc)[2..] "$(commandline -ct)" 2>/dev/null)
    if set -q found[1]
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c halfcard -f -a '(__halfcard_candidates)'
"""

_SCRIPTS: Final[Mapping[str, str]] = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}

_NO_FILES: Final = ":4"
_FILES: Final = ":0"
"""The directives of kubectl's own completion: complete no file names, or file names."""

_TO_SWITCH_ON: Final = """\
bash: source <(halfcard completion bash)
zsh:  source <(halfcard completion zsh)
fish: halfcard completion fish | source
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"Put the line of your shell into its start-up file:\n\n{_TO_SWITCH_ON}"
    parser.add_argument("shell", choices=tuple(_SCRIPTS))


def run(arguments: argparse.Namespace) -> int:
    print(_SCRIPTS[arguments.shell], end="")
    return EXIT_OK


def print_candidates(parser: argparse.ArgumentParser, words: Sequence[str]) -> int:
    sys.stdout.writelines(f"{candidate}\n" for candidate in candidates(parser, words))
    return EXIT_OK


def print_for_kubectl(parser: argparse.ArgumentParser, words: Sequence[str]) -> int:
    """Prints a last line that tells kubectl what to do where there is no candidate."""
    found = list(candidates(parser, words))
    sys.stdout.writelines(f"{line}\n" for line in (*found, _NO_FILES if found else _FILES))
    return EXIT_OK


def candidates(parser: argparse.ArgumentParser, words: Sequence[str]) -> Iterator[str]:
    """Yields the candidates for the last word, each with its meaning after a tab."""
    *typed, last = words or [""]
    awaiting: argparse.Action | None = None
    for word in typed:
        if word.startswith("-"):
            option = options(parser).get(word)
            awaiting = option if option is not None and option.nargs != 0 else None
        elif awaiting is not None:
            awaiting = None
        else:
            parser = subcommands(parser).get(word, parser)
    offered = _offered(parser, awaiting, as_option=last.startswith("-"))
    yield from (f"{word}\t{meaning}" if meaning else word for word, meaning in offered.items() if word.startswith(last))


def _offered(
    parser: argparse.ArgumentParser, awaiting: argparse.Action | None, *, as_option: bool
) -> Mapping[str, str]:
    if awaiting is not None:
        return _choices(awaiting)
    if as_option:
        return {word: action.help or "" for word, action in options(parser).items() if word.startswith("--")}
    positional = [each for each in actions(parser) if not each.option_strings]
    return summaries(parser) or {word: "" for each in positional for word in _choices(each)}


def _choices(action: argparse.Action) -> Mapping[str, str]:
    return dict.fromkeys(map(str, action.choices or ()), "")
