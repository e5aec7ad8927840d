function __kubectl_acme_complete
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
