#compdef @NAMES@
# Completion of moldau for zsh: eval "$(moldau completion zsh)", or this as _moldau in a folder of $fpath
_moldau() {
    local -a answer texts shown
    local line
    answer=("${(@f)$(@ASK@ "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null </dev/null)}")
    case ${answer[1]-} in
        files) [[ $PREFIX == -*=* ]] && compset -P '*='; _files; return ;;
        folders) [[ $PREFIX == -*=* ]] && compset -P '*='; _files -/; return ;;
    esac
    for line in "${(@)answer[2,-1]}"; do
        [[ -n $line ]] || continue
        texts+=("${line%%$'\t'*}")
        if [[ -n ${line#*$'\t'} ]]; then
            shown+=("${line%%$'\t'*}  -- ${line#*$'\t'}")
        else
            shown+=("${line%%$'\t'*}")
        fi
    done
    (( $#texts )) || return 1
    local -a ending
    [[ ${answer[1]-} == nospace ]] && ending=(-S '')
    if [[ ${shown[1]} == *'  -- '* ]]; then
        compadd "${ending[@]}" -l -d shown -a texts
    else
        compadd "${ending[@]}" -a texts
    fi
}
if [[ ${funcstack[1]-} == _moldau ]]; then
    _moldau "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit -u; }
    compdef _moldau @NAMES@
fi
