"""What completes commands in bash, zsh and fish: a table of all commands, and how each reads it.

The tables are made of the parsers, so that a shell starts no program to complete an option; only
the names of servers are asked for, `mcp-bridge completion names`.
"""

from collections.abc import Callable, Iterator

from autobot_mcp_bridge.cli.tree import Command, Option, Takes, Value

_ASK = "mcp-bridge completion names 2>/dev/null"

_BASH = r"""# Completion of mcp-bridge(1), as `mcp-bridge completion bash` prints it.

# Of the command $1: its options, the commands below it, what its arguments are.
_mcp_bridge_at() {
    opts= below= args=
    case $1 in
@AT@
    esac
}

# What the option $2 of the command $1 takes; empty: nothing.
_mcp_bridge_takes() {
    kind=
    case "$1 $2" in
@TAKES@
    esac
}

_mcp_bridge_offer() {
    case $1 in
    server) mapfile -t COMPREPLY < <(compgen -W "$(@ASK@)" -- "$cur") ;;
    file) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    directory) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
    of:*) kind=${1#of:}; mapfile -t COMPREPLY < <(compgen -W "${kind//|/ }" -- "$cur") ;;
    esac
}

_mcp_bridge() {
    local cur=${COMP_WORDS[COMP_CWORD]} path= number=0 pending= word i
    local opts below args kind
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $word == = ]]; then
            continue
        elif [[ -n $pending ]]; then
            pending=
        elif [[ $word == -- ]]; then
            compopt -o default
            return
        elif [[ $word == -* ]]; then
            _mcp_bridge_takes "$path" "$word"
            pending=$kind
        else
            _mcp_bridge_at "$path"
            if [[ " $below " == *" $word "* ]]; then
                path=${path:+$path }$word
            else
                number=$((number + 1))
            fi
        fi
    done
    [[ $cur == = ]] && cur=
    _mcp_bridge_at "$path"
    if [[ -n $pending ]]; then
        _mcp_bridge_offer "$pending"
    elif [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$opts" -- "$cur")
    elif [[ -n $below ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$below" -- "$cur")
    else
        local -a kinds=($args)
        _mcp_bridge_offer "${kinds[number]-}"
    fi
}

complete -F _mcp_bridge mcp-bridge
"""

_ZSH = r"""#compdef mcp-bridge
# Completion of mcp-bridge(1), as `mcp-bridge completion zsh` prints it.

# Of the command $1: its options, the commands below it, what its arguments are.
_mcp_bridge_at() {
    opts=() below=() args=()
    case $1 in
@AT@
    esac
}

# What the option $2 of the command $1 takes; empty: nothing.
_mcp_bridge_takes() {
    kind=
    case "$1 $2" in
@TAKES@
    esac
}

_mcp_bridge_offer() {
    local -a found
    case $1 in
    server) found=("${(@f)$(@ASK@)}"); compadd -a found ;;
    file) _files ;;
    directory) _files -/ ;;
    of:*) found=("${(@s:|:)${1#of:}}"); compadd -a found ;;
    *) _message 'a value' ;;
    esac
}

_mcp_bridge() {
    local word cmd= kind= pending= number=1 i
    local -a opts below args
    for ((i = 2; i < CURRENT; i++)); do
        word=${words[i]}
        if [[ -n $pending ]]; then
            pending=
        elif [[ $word == -- ]]; then
            _default
            return
        elif [[ $word == -* ]]; then
            _mcp_bridge_takes "$cmd" "$word"
            pending=$kind
        else
            _mcp_bridge_at "$cmd"
            if ((${below[(I)${word}:*]})); then
                cmd=${cmd:+$cmd }$word
            else
                number=$((number + 1))
            fi
        fi
    done
    _mcp_bridge_at "$cmd"
    if [[ -n $pending ]]; then
        _mcp_bridge_offer "$pending"
    elif [[ $PREFIX == --*=* ]]; then
        _mcp_bridge_takes "$cmd" "${PREFIX%%=*}"
        compset -P '*='
        _mcp_bridge_offer "$kind"
    elif [[ $PREFIX == -* ]]; then
        _describe -o option opts
    elif ((${#below})); then
        _describe command below
    else
        _mcp_bridge_offer "${args[number]}"
    fi
}

if [[ $funcstack[1] == _mcp-bridge ]]; then
    _mcp_bridge "$@"
else
    compdef _mcp_bridge mcp-bridge
fi
"""

_FISH = r"""# Completion of mcp-bridge(1), as `mcp-bridge completion fish` prints it.

# Whether the command line is at the command $argv[1], and its argument number $argv[2], if given.
function __mcp_bridge_at
    set -l at ''
    set -l number 0
    set -l pending
    for word in (commandline -opc)[2..-1]
        if set -q pending[1]
            set -e pending
        else if test "$word" = --
            test "$argv[1]" = --
            return
        else if string match -q -- '-*' $word
            contains -- "$at $word" $__mcp_bridge_values; and set pending $word
        else if contains -- (string trim -- "$at $word") $__mcp_bridge_commands
            set at (string trim -- "$at $word")
        else
            set number (math $number + 1)
        end
    end
    test "$at" = "$argv[1]"; or return 1
    test (count $argv) -lt 2; or test $number -eq $argv[2]
end

set -g __mcp_bridge_commands @COMMANDS@
set -g __mcp_bridge_values @VALUES@
complete -c mcp-bridge -f
complete -c mcp-bridge -n '__mcp_bridge_at --' -F
"""


def script(shell: str, program: Command) -> str:
    """The script of that shell: bash, zsh or fish."""
    make: dict[str, Callable[[Command], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    return make[shell](program)


def _bash(program: Command) -> str:
    at = "\n".join(
        f"    {_quoted(command.path)})\n"
        f"        opts={_quoted(' '.join(_names(command)))}\n"
        f"        below={_quoted(' '.join(one.words[-1] for one in command.commands))}\n"
        f"        args={_quoted(' '.join(_kinds(command)))} ;;"
        for command in program.all()
    )
    return _filled(_BASH, program, at)


def _zsh(program: Command) -> str:
    at = "\n".join(
        f"    {_quoted(command.path)})\n"
        f"        opts=({' '.join(_explained(command.options))})\n"
        f"        below=({' '.join(_quoted(f'{one.words[-1]}:{one.help}') for one in command.commands)})\n"
        f"        args=({' '.join(map(_quoted, _kinds(command)))}) ;;"
        for command in program.all()
    )
    return _filled(_ZSH, program, at)


def _filled(text: str, program: Command, at: str) -> str:
    takes = "\n".join(
        f"    {'|'.join(_quoted(f'{command.path} {name}') for name in option.names)})"
        f" kind={_quoted(_kind(option.value))} ;;"
        for command in program.all()
        for option in command.options
        if option.value is not None
    )
    return text.replace("@AT@", at).replace("@TAKES@", takes).replace("@ASK@", _ASK)


def _fish(program: Command) -> str:
    commands = [command.path for command in program.all() if command.path]
    values = [
        f"{command.path} {name}"
        for command in program.all()
        for option in command.options
        if option.value is not None
        for name in option.names
    ]
    head = _FISH.replace("@COMMANDS@", " ".join(map(_quoted_fish, commands)))
    head = head.replace("@VALUES@", " ".join(map(_quoted_fish, values)))
    return head + "".join(f"complete -c mcp-bridge {line}\n" for line in _fish_lines(program))


def _fish_lines(program: Command) -> Iterator[str]:
    for command in program.all():
        here = _quoted_fish(f"__mcp_bridge_at {_quoted_fish(command.path)}")
        for one in command.commands:
            yield f"-n {here} -a {one.words[-1]} -d {_quoted_fish(one.help)}"
        for option in command.options:
            flags = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                for name in option.names
            )
            offer = "" if option.value is None else f" {_offer_fish(option.value)}"
            yield f"-n {here} {flags}{offer} -d {_quoted_fish(option.help)}"
        for number, argument in enumerate(command.arguments):
            place = "" if argument.repeated else f" {number}"
            there = _quoted_fish(f"__mcp_bridge_at {_quoted_fish(command.path)}{place}")
            if argument.value.choices or argument.value.takes is not Takes.ANY:
                offer = _offer_fish(argument.value).removeprefix("-x ").replace("-r -F", "-F")
                yield f"-n {there} {offer}"


def _offer_fish(value: Value) -> str:
    if value.choices:
        return f"-x -a {_quoted_fish(' '.join(value.choices))}"
    match value.takes:
        case Takes.SERVER:
            return f"-x -a {_quoted_fish(f'({_ASK})')}"
        case Takes.FILE:
            return "-r -F"
        case Takes.DIRECTORY:
            return "-x -a '(__fish_complete_directories)'"
        case Takes.ANY:
            return "-x"


def _names(command: Command) -> Iterator[str]:
    return (name for option in command.options for name in option.names)


def _explained(options: tuple[Option, ...]) -> Iterator[str]:
    for option in options:
        for name in option.names:
            yield _quoted(f"{name}:{option.help}")


def _kinds(command: Command) -> Iterator[str]:
    """What each argument is; one that may be repeated is what all further ones are."""
    for argument in command.arguments:
        yield from [_kind(argument.value)] * (_MANY if argument.repeated else 1)


_MANY = 16


def _kind(value: Value) -> str:
    return "of:" + "|".join(value.choices) if value.choices else value.takes.value


def _quoted(text: str) -> str:
    """A word of bash and zsh."""
    return "'" + text.replace("'", "'\\''") + "'"


def _quoted_fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
