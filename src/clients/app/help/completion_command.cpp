#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "clients/app/commands.hpp"
#include "clients/app/line/command_line.hpp"
#include "clients/app/line/output.hpp"
#include "completions.hpp"

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

namespace {

std::vector<std::string> shell_names() {
  std::vector<std::string> names;
  for (const Shell& shell : shells()) names.emplace_back(shell.name);
  return names;
}

const Shell& shell_called(const std::string& name) {
  const auto all = shells();
  const auto found = std::ranges::find(all, name, &Shell::name);
  if (found != all.end()) return *found;
  const std::vector<std::string> names = shell_names();
  const std::vector<std::string_view> views(names.begin(), names.end());
  throw Error(unknown_name_message("shell", name, views));
}

}  // namespace

int completion_command(std::span<const std::string> arguments) {
  const auto border = std::ranges::find(arguments, "--");
  std::vector<const Shell*> wanted;
  std::string out;
  CommandLine line("rubato completion",
                   "Prints a script that makes a shell complete the commands and options of "
                   "rubato, the names that they take, and files and folders.");
  line.operands(
      OperandCount::optional, "SHELL",
      "the shell: " + fmt::to_string(fmt::join(shell_names(), ", ")),
      [&](const std::string& text) { wanted.push_back(&shell_called(text)); }, shell_names());
  line.option("out", "DIR", "write the scripts of all shells below DIR, as they are installed", "",
              [&](const std::string& text) { out = text; });
  line.rest("[WORD...]");
  line.footer(
      "Installed programs have the scripts where shells look for them. For others:\n"
      "  source <(rubato completion bash)\n"
      "  source <(rubato completion zsh)\n"
      "  rubato completion fish | source\n"
      "The scripts ask `rubato completion -- WORD...` what completes the last of the\n"
      "words of a command line, from behind `rubato` to the cursor.");
  line.parse({arguments.begin(), border});
  const bool asks = border != arguments.end();
  const std::size_t wishes = wanted.size() + (out.empty() ? 0 : 1) + (asks ? 1 : 0);
  if (wishes != 1) {
    throw Error(fmt::format("{}; accepted: one of {}",
                            wishes == 0 ? "no shell is named" : "too many arguments",
                            fmt::join(shell_names(), ", ")));
  }
  if (asks) {
    print_out(lines_of(completions(program(), {border + 1, arguments.end()})));
    return 0;
  }
  if (!out.empty()) {
    for (const Shell& shell : shells()) write_below(out, shell.installed, shell.script);
    return 0;
  }
  print_out(wanted.front()->script);
  return 0;
}

}  // namespace rubato::app
