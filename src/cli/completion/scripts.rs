//! Scripts that the shells run at TAB: a script asks this program for candidates, and the shell completes paths by itself.

/// Script for bash. bash cuts words at `=` and `:`, so the script passes on the whole line, with the piece to complete.
pub(super) const BASH: &str = r#"_kubectl_acme() {
    local due word
    COMPREPLY=()
    {
        IFS= read -r due
        while IFS= read -r word; do
            COMPREPLY+=("$word")
        done
    } < <(KUBECTL_ACME_COMPLETE=bash kubectl-acme -- "${COMP_LINE:0:COMP_POINT}" "$2" 2>/dev/null)
    case $due in
        files) compopt -o default -o filenames 2>/dev/null ;;
        folders) compopt -o dirnames -o filenames 2>/dev/null ;;
    esac
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o nosort -o bashdefault -F _kubectl_acme kubectl-acme 2>/dev/null ||
    complete -o bashdefault -F _kubectl_acme kubectl-acme
"#;

/// Script for zsh, run at the first TAB if zsh finds the script in `fpath`, or when sourced.
pub(super) const ZSH: &str = r#"#compdef kubectl-acme
_kubectl_acme() {
    local due line found=1
    local -a answer whole open
    answer=("${(@f)$(KUBECTL_ACME_COMPLETE=zsh kubectl-acme -- "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    due=$answer[1]
    [[ $PREFIX == -*=* ]] && compset -P 1 '*='
    case $due in
        files) _files ;;
        folders) _files -/ ;;
        *)
            for line in "${(@)answer[2,-1]}"; do
                # A colon that is escaped is part of the value.
                if [[ ${${line//\\:/}%%:*} == *[=/] ]]; then
                    open+=("$line")
                else
                    whole+=("$line")
                fi
            done
            (( $#whole )) && _describe -V 'values' whole && found=0
            (( $#open )) && _describe -V 'values' open -S '' && found=0
            return found
            ;;
    esac
}
if [[ ${funcstack[1]-} == _kubectl-acme ]]; then
    _kubectl_acme "$@"
else
    compdef _kubectl_acme kubectl-acme
fi
"#;

/// Script for fish, which completes whole words; paths are completed as for a command that fish does not know.
pub(super) const FISH: &str = r#"function __kubectl_acme_complete
    set -l word (commandline --current-token --cut-at-cursor)
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l answer (KUBECTL_ACME_COMPLETE=fish kubectl-acme -- $words "$word" 2>/dev/null)
    set -l flag (string match --regex -- '^-[^=]*=' "$word")
    set -l path (string replace --regex -- '^-[^=]*=' '' "$word")
    switch "$answer[1]"
        case files folders
            for found in (complete --do-complete="'' $path" | string split --fields 1 \t)
                if test $answer[1] = files; or string match --quiet '*/' $found
                    echo "$flag$found"
                end
            end
        case words
            string join -- \n $answer[2..]
    end
end
complete --keep-order --no-files --command kubectl-acme --arguments '(__kubectl_acme_complete)'
"#;
