# Completion of moldau for fish: moldau completion fish | source
function __moldau_complete
    set -l begun (commandline -ct)
    set -l answer (@ASK@ (commandline -opc) "$begun" 2>/dev/null </dev/null)
    set -l option (string match -r -- '^-[^=]*=' "$begun")
    set -l path (string replace -r -- '^-[^=]*=' '' "$begun")
    switch "$answer[1]"
        case files
            printf '%s\n' "$option"(__fish_complete_path "$path")
        case folders
            printf '%s\n' "$option"(__fish_complete_directories "$path" '')
        case '*'
            string match -v '' -- $answer[2..-1]
    end
end
for name in @NAMES@
    complete -c $name -f -a '(__moldau_complete)'
end
