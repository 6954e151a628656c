# Completion of moldau for bash: eval "$(moldau completion bash)"
_moldau() {
    local answer
    mapfile -t answer < <(@ASK@ "$COMP_WORDBREAKS" "${COMP_LINE:0:COMP_POINT}" 2>/dev/null </dev/null)
    COMPREPLY=("${answer[@]:1}")
    case ${answer[0]-} in
        files) compopt -o default ;;
        folders) compopt -o dirnames ;;
        nospace) compopt -o nospace ;;
    esac
}
complete -F _moldau @NAMES@
