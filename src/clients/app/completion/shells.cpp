#include "shells.hpp"

#include <array>

namespace rubato::app {

namespace {

// The script first joins words that bash has split: bash also splits at the characters of
// COMP_WORDBREAKS, and then replaces only the part after the last of these.
constexpr std::string_view kBash =
    R"(# Completes the commands, options and names of rubato in bash; rubato itself lists them.
_rubato() {
  local line=${COMP_LINE:0:COMP_POINT} words=() word i
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word=${line#"${line%%[![:space:]]*}"}
    ((i == COMP_CWORD)) || word=${COMP_WORDS[i]}
    if ((i == 0)) || [[ $line == [[:space:]]* ]]; then words+=("$word"); else words[-1]+=$word; fi
    line=${line#*"$word"}
  done
  local last=${words[-1]} kept= candidate
  for i in : =; do
    candidate=${last%"${last##*"$i"}"}
    if [[ $COMP_WORDBREAKS == *"$i"* ]] && ((${#candidate} > ${#kept})); then kept=$candidate; fi
  done
  local answer before paths reply
  mapfile -t answer < <("${words[0]/#\~/$HOME}" completion -- "${words[@]:1}" 2>/dev/null)
  COMPREPLY=()
  for reply in "${answer[@]}"; do
    case $reply in
      :files\ * | :folders\ *)
        before=${reply#:* }
        if [[ $reply == :files* ]]; then i=file; else i=directory; fi
        mapfile -t paths < <(compgen -A $i -- "${last#"$before"}")
        COMPREPLY+=("${paths[@]/#/$before}")
        compopt -o filenames 2>/dev/null
        ;;
      *) COMPREPLY+=("${reply%%$'\t'*}") ;;
    esac
  done
  [[ ${#COMPREPLY[@]} -ne 1 || $COMPREPLY != *[:=] ]] || compopt -o nospace 2>/dev/null
  COMPREPLY=("${COMPREPLY[@]#"$kept"}")
}
complete -F _rubato rubato
)";

constexpr std::string_view kZsh = R"(#compdef rubato
# Completes the commands, options and names of rubato in zsh; rubato itself lists them.
_rubato() {
  local reply word before
  local -a whole open
  for reply in "${(@f)$(${(Q)words[1]/#\~/$HOME} completion -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
    word=${${reply%%$'\t'*}//:/\\:}
    case $reply in
      '') ;;
      ':files '* | ':folders '*) before=$reply ;;
      *[:=]$'\t'*) open+=("$word:${reply#*$'\t'}") ;;
      *) whole+=("$word:${reply#*$'\t'}") ;;
    esac
  done
  local found=1
  (($#whole == 0)) || { _describe 'value' whole && found=0; }
  (($#open == 0)) || { _describe 'value' open -S '' && found=0; }
  if [[ -n $before ]]; then
    compset -P "${(b)${before#:* }}"
    if [[ $before == :files* ]]; then _files && found=0; else _files -/ && found=0; fi
  fi
  return found
}
if [[ $funcstack[1] == _rubato ]]; then _rubato "$@"; else compdef _rubato rubato; fi
)";

constexpr std::string_view kFish =
    R"(# Completes the commands, options and names of rubato in fish; rubato itself lists them.
function __rubato_completions
    set -l words (commandline --tokenize --cut-at-cursor --current-process)
    set -l last (commandline --current-token --cut-at-cursor)
    for reply in ($words[1] completion -- $words[2..] "$last" 2>/dev/null)
        switch $reply
            case ':files *' ':folders *'
                set -l before (string replace --regex '^:\w+ ' '' -- $reply)
                set -l path (string sub --start (math 1 + (string length -- "$before")) -- "$last")
                set -l paths
                if string match --quiet ':files *' -- $reply
                    set paths (__fish_complete_path "$path")
                else
                    set paths (__fish_complete_directories "$path" '')
                end
                for found in $paths
                    echo "$before$found"
                end
            case '*'
                echo $reply
        end
    end
end
complete --command rubato --no-files --arguments '(__rubato_completions)'
)";

constexpr std::array kShells{
    Shell{"bash", kBash, "bash-completion/completions/rubato"},
    Shell{"zsh", kZsh, "zsh/site-functions/_rubato"},
    Shell{"fish", kFish, "fish/vendor_completions.d/rubato.fish"},
};

}  // namespace

std::span<const Shell> shells() {
  return kShells;
}

}  // namespace rubato::app
