"""Shell completion. The scripts ask ``hal-inventory`` for nodes, and look into the project for roles."""

from __future__ import annotations

from collections.abc import Sequence

from hal_cluster.audit import roles

BASH = """\
# hal-audit completion for bash: eval "$(hal-audit completion bash)"
_hal_audit() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= at sources=() choices=
    for ((at = 1; at < COMP_CWORD; at++)); do
        case ${COMP_WORDS[at]} in
            -i|--inventory) sources+=(-i "${COMP_WORDS[at+1]}"); ((at++)) ;;
            -*) ;;
            *) command=${command:-${COMP_WORDS[at]}} ;;
        esac
    done
    case $before in
        -i|--inventory) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
        --limit) choices=$(hal-inventory "${sources[@]}" names 2>/dev/null) ;;
        --role) choices="%(roles)s" ;;
        *)
            case $command:$word in
                :*) choices="%(commands)s" ;;
                run:-*) choices="-i --inventory --json --limit --role --forks --deep --help" ;;
                takeover:-*) choices="-i --inventory --json --limit --role --diff --help" ;;
                show:-*) choices="-i --inventory --json --role --help" ;;
                originals:-*) choices="-i --inventory --json --role --help" ;;
                history:-*) choices="-i --inventory --json --last --help" ;;
                adopt:-*) choices="-i --inventory --json --limit --accept --help" ;;
                accept:-*) choices="-i --inventory --json --reason --until --limit --help" ;;
                timer:-*) choices="-i --inventory --at --remove --help" ;;
                show:*|history:*|originals:*)
                    choices=$(hal-inventory "${sources[@]}" nodes all --expand 2>/dev/null) ;;
                completion:*) choices="bash zsh" ;;
            esac ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
}
complete -F _hal_audit hal-audit
"""

ZSH = """\
#compdef hal-audit
# hal-audit completion for zsh: eval "$(hal-audit completion zsh)"
_hal_audit() {
    local at command= before=${words[CURRENT-1]}
    local -a sources choices
    for ((at = 2; at < CURRENT; at++)); do
        case ${words[at]} in
            -i|--inventory) sources+=(-i ${words[at+1]}); ((at++)) ;;
            -*) ;;
            *) command=${command:-${words[at]}} ;;
        esac
    done
    case $before in
        -i|--inventory) _files; return ;;
        --limit) choices=(${(f)"$(hal-inventory $sources names 2>/dev/null)"}) ;;
        --role) choices=(%(roles)s) ;;
        *)
            case $command:${words[CURRENT]} in
                :*) choices=(%(commands)s) ;;
                run:-*) choices=(-i --inventory --json --limit --role --forks --deep --help) ;;
                takeover:-*) choices=(-i --inventory --json --limit --role --diff --help) ;;
                show:-*) choices=(-i --inventory --json --role --help) ;;
                originals:-*) choices=(-i --inventory --json --role --help) ;;
                history:-*) choices=(-i --inventory --json --last --help) ;;
                adopt:-*) choices=(-i --inventory --json --limit --accept --help) ;;
                accept:-*) choices=(-i --inventory --json --reason --until --limit --help) ;;
                timer:-*) choices=(-i --inventory --at --remove --help) ;;
                show:*|history:*|originals:*)
                    choices=(${(f)"$(hal-inventory $sources nodes all --expand 2>/dev/null)"}) ;;
                completion:*) choices=(bash zsh) ;;
            esac ;;
    esac
    compadd -a choices
}
compdef _hal_audit hal-audit
"""


def script(shell: str, commands: Sequence[str]) -> str:
    """Return the completion script of a shell, ``bash`` or ``zsh``."""
    return {"bash": BASH, "zsh": ZSH}[shell] % {"commands": " ".join(commands), "roles": " ".join(roles.names())}
