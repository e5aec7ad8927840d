_kubectl_acme() {
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
