"""Shell completion. The scripts ask ``hal-inventory names`` for what depends on the site."""

from __future__ import annotations

from collections.abc import Sequence

BASH = """\
# hal-inventory completion for bash: eval "$(hal-inventory completion bash)"
_hal_inventory() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= at sources=() choices
    for ((at = 1; at < COMP_CWORD; at++)); do
        case ${COMP_WORDS[at]} in
            -i) sources+=(-i "${COMP_WORDS[at+1]}"); ((at++)) ;;
            -*) ;;
            *) command=${command:-${COMP_WORDS[at]}} ;;
        esac
    done
    case $before in
        -i|--inventory) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
        --host|--node) choices=$(hal-inventory "${sources[@]}" nodes all --expand 2>/dev/null) ;;
        *)
            case $command:$word in
                *:-*) choices="%(options)s" ;;
                :*) choices="%(commands)s" ;;
                show:*) choices="%(kinds)s $(hal-inventory "${sources[@]}" names 2>/dev/null)" ;;
                list:*|nodes:*|graph:*|ssh-config:*)
                    choices="and or not all $(hal-inventory "${sources[@]}" names 2>/dev/null)" ;;
                completion:*) choices="bash zsh" ;;
                validate:*|capture:*) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
            esac ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
}
complete -F _hal_inventory hal-inventory
"""

ZSH = """\
#compdef hal-inventory
# hal-inventory completion for zsh: eval "$(hal-inventory completion zsh)"
_hal_inventory() {
    local at command= before=${words[CURRENT-1]}
    local -a sources choices
    for ((at = 2; at < CURRENT; at++)); do
        case ${words[at]} in
            -i) sources+=(-i ${words[at+1]}); ((at++)) ;;
            -*) ;;
            *) command=${command:-${words[at]}} ;;
        esac
    done
    case $before in
        -i|--inventory) _files; return ;;
        --host|--node) choices=(${(f)"$(hal-inventory $sources nodes all --expand 2>/dev/null)"}) ;;
        *)
            if [[ ${words[CURRENT]} == -* ]]; then
                choices=(%(options)s)
            else
                case $command in
                    "") choices=(%(commands)s) ;;
                    show) choices=(%(kinds)s ${(f)"$(hal-inventory $sources names 2>/dev/null)"}) ;;
                    list|nodes|graph|ssh-config)
                        choices=(and or not all ${(f)"$(hal-inventory $sources names 2>/dev/null)"}) ;;
                    completion) choices=(bash zsh) ;;
                    validate|capture) _files; return ;;
                esac
            fi ;;
    esac
    compadd -a choices
}
compdef _hal_inventory hal-inventory
"""


def script(shell: str, *, commands: Sequence[str], options: Sequence[str], kinds: Sequence[str]) -> str:
    """Return the completion script of a shell, ``bash`` or ``zsh``."""
    words = {"commands": " ".join(commands), "options": " ".join(options), "kinds": " ".join(kinds)}
    return {"bash": BASH, "zsh": ZSH}[shell] % words
