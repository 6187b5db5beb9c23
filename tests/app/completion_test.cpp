// `rubato completion`: what it offers, and what bash, zsh and fish make of it.

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <rubato/runs/run_configuration.hpp>

#include "app/run_program.hpp"
#include "runs/config/run_option.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using test::ProgramResult;
using test::TempFolder;
using testing::IsSupersetOf;

using Lines = std::vector<std::string>;

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string help_of(const test::Words& words) {
  return test::rubato(words + "--help").out;
}

// The commands that the help lists under its heading.
Lines commands_of(const test::Words& words) {
  std::istringstream help(help_of(words));
  Lines commands;
  std::string line;
  while (std::getline(help, line) && line != "Commands:") continue;
  while (std::getline(help, line) && !line.empty()) {
    commands.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return commands;
}

// The options in a help.
Lines options_in(const std::string& help) {
  Lines options;
  for (const std::string& line : lines_of(help)) {
    const std::size_t begin = line.find("--");
    if (line.starts_with("  --") || line.starts_with("  -h, --")) {
      options.push_back(line.substr(begin, line.find_first_of(" =", begin) - begin));
    }
  }
  return options;
}

// The words in the table of the script for bash that stand at `key`.
Lines words_at(const std::string& key) {
  static const std::string script = test::rubato({"completion", "bash"}).out;
  const std::string begin = fmt::format("\n[{}]='", key);
  const std::size_t found = script.find(begin);
  if (found == std::string::npos) return {};
  const std::size_t at = found + begin.size();
  std::istringstream words(script.substr(at, script.find('\'', at) - at));
  return {std::istream_iterator<std::string>(words), {}};
}

TEST(CompletionTable, HasEveryCommandAndEveryOption) {
  const Lines commands = commands_of({});
  EXPECT_THAT(commands, IsSupersetOf({"train", "trace", "completion"}));
  EXPECT_EQ(words_at("rubato/"), commands);
  for (const std::string& command : commands) {
    const Lines own = commands_of(command);
    for (const std::string& name : own.empty() ? Lines{""} : own) {
      Lines words{command};
      if (!name.empty()) words.push_back(name);
      Lines options = options_in(help_of(words));
      if (command == "launch") options.emplace_back("--");
      EXPECT_EQ(words_at(fmt::format("rubato/{}", fmt::join(words, "/"))), options);
    }
    if (!own.empty()) {
      EXPECT_EQ(words_at("rubato/" + command + "/"), own);
    }
  }
}

TEST(CompletionTable, HasTheNamesThatOptionsTake) {
  EXPECT_EQ(words_at("rubato/train/--rule"), (Lines{"constant", "linear", "root", "root-adam",
                                                    "linear-momentum", "adascale", "lbsgd"}));
  EXPECT_THAT(words_at("rubato/train/--assignment"), ElementsAre("contiguous", "strided"));
  EXPECT_THAT(words_at("rubato/train/--trace"), IsSupersetOf({"elastic", "spot"}));
  EXPECT_THAT(words_at("rubato/train/--data"), IsSupersetOf({"digits", "csv:", "mnist:"}));
  EXPECT_THAT(words_at("rubato/train/--schedule"), Contains("multi-step:"));
  EXPECT_THAT(words_at("rubato/trace/show/"), Contains("spot"));
  EXPECT_THAT(words_at("rubato/list/"), Contains("records"));
  EXPECT_THAT(words_at("rubato/completion/"), ElementsAre("bash", "zsh", "fish"));
  for (const char* const numbers : {"cores", "checkpoint-every", "out", "config"}) {
    EXPECT_THAT(words_at(fmt::format("rubato/train/--{}", numbers)), IsEmpty()) << numbers;
  }
}

// Whatever is offered is accepted; a name that needs arguments ends with a colon.
TEST(CompletionTable, HasNamesThatAreAccepted) {
  int accepted = 0;
  for (const RunOption& option : run_options()) {
    for (const std::string& value : words_at("rubato/train/--" + option.name)) {
      if (value.ends_with(':')) continue;
      RunConfiguration run;
      EXPECT_NO_THROW(option.set(run, value)) << option.name << " " << value;
      ++accepted;
    }
  }
  EXPECT_GT(accepted, 70);
}

TEST(CompletionCommand, SaysWhichShellsThereAre) {
  EXPECT_EQ(
      test::rubato({"completion", "fich"}).err,
      "rubato completion: unknown shell 'fich'; did you mean 'fish'? accepted: bash, zsh, fish\n");
  const ProgramResult none = test::rubato({"completion"});
  EXPECT_EQ(none.code, 2);
  EXPECT_EQ(none.err, "rubato completion: no shell is named; accepted: one of bash, zsh, fish\n");
  EXPECT_EQ(test::rubato({"completion", "bash", "zsh"}).code, 2);
  EXPECT_EQ(test::rubato({"completion", "bash", "--out", "share"}).code, 2);
}

TEST(CompletionCommand, WritesTheScriptsOfAllShells) {
  const TempFolder folder;
  const ProgramResult result = test::rubato({"completion", "--out", "share"}, folder.path());
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  for (const auto& [shell, file] : {std::pair("bash", "bash-completion/completions/rubato"),
                                    {"zsh", "zsh/site-functions/_rubato"},
                                    {"fish", "fish/vendor_completions.d/rubato.fish"}}) {
    const std::string script = test::rubato({"completion", shell}).out;
    EXPECT_THAT(script, HasSubstr("linear-momentum"));
    EXPECT_EQ(test::read_file(folder.path() / "share" / file), script);
  }
  folder.write("taken", "");
  EXPECT_EQ(test::rubato({"completion", "--out", "taken"}, folder.path()).code, 24);
}

bool has_shell(const std::string& name) {
  return std::filesystem::exists("/usr/bin/" + name);
}

// A folder with files to complete, and the program as a shell finds it.
class InShell : public testing::Test {
 protected:
  InShell() {
    std::filesystem::create_directories(folder_.path() / "bin");
    std::filesystem::create_symlink(RUBATO_PROGRAM, folder_.path() / "bin/rubato");
    std::filesystem::create_directories(folder_.path() / "digits of mine/train");
    folder_.write("table.csv", "");
    folder_.write("config.toml", "");
  }

  [[nodiscard]] std::string in(const std::string& shell, const std::string& script) const {
    const std::string file = folder_.write("script." + shell, "PATH=$PWD/bin:$PATH\n" + script);
    const ProgramResult result = test::run_program("/usr/bin/" + shell, {file}, folder_.path());
    EXPECT_EQ(result.err, "");
    return result.out;
  }

  TempFolder folder_;
};

// The replies to the words of a line as bash divides them, with the cursor at its end.
TEST_F(InShell, BashCompletes) {
  const auto replies = [&](const Lines& words) {
    std::string quoted;
    for (const std::string& word : words) quoted += fmt::format(" '{}'", word);
    return lines_of(in("bash", fmt::format("source <(rubato completion bash)\n"
                                           "COMP_WORDS=(rubato{})\n"
                                           "COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n"
                                           "_rubato_complete 2>/dev/null\n"
                                           "((${{#COMPREPLY[@]}} == 0)) ||\n"
                                           "  printf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
                                           quoted)));
  };
  EXPECT_THAT(replies({"tr"}), ElementsAre("train", "trace"));
  EXPECT_THAT(replies({"trace", "sh"}), ElementsAre("show"));
  EXPECT_THAT(replies({"train", "--hist"}), ElementsAre("--histograms", "--histograms-every"));
  EXPECT_THAT(replies({"train", "--rule", "l"}), ElementsAre("linear", "linear-momentum", "lbsgd"));
  EXPECT_THAT(replies({"train", "--rule", "=", "ada"}), ElementsAre("adascale"));
  EXPECT_THAT(replies({"train", "--rule", "="}), Contains("linear"));
  EXPECT_THAT(replies({"compare", "--rule", "linear,ada"}), ElementsAre("linear,adascale"));
  EXPECT_THAT(replies({"train", "--augment", "shift+fl"}), ElementsAre("shift+flip"));
  EXPECT_THAT(replies({"train", "--out", ""}), IsEmpty()) << "bash completes files";
  EXPECT_THAT(replies({"train", "--data", "csv", ":", "ta"}), IsEmpty()) << "bash completes files";
  EXPECT_THAT(replies({"list", "rec"}), ElementsAre("records"));
  EXPECT_THAT(replies({"launch", "--hosts", "2", "--", "tr"}), ElementsAre("train", "trace"));
  EXPECT_THAT(replies({"launch", "--", "train", "--rule", "ada"}), ElementsAre("adascale"));
}

// In an emulated terminal: what stands in the line after a tab.
TEST_F(InShell, ZshCompletes) {
  if (!has_shell("zsh")) GTEST_SKIP() << "there is no zsh";
  const auto completed = [&](const std::string& typed) {
    return in("zsh", fmt::format(R"(
zmodload zsh/zpty
zpty -b shell 'zsh -f -i'
zpty -w shell 'PS1=; autoload -Uz compinit && compinit -u -D; source <(rubato completion zsh)
show() {{ print -r -- $BUFFER >shown; exit }}; zle -N show; bindkey "^X" show; print ready >begun'
for i in {{1..300}}; do [[ -s begun ]] && break; sleep 0.1; done
zpty -w -n shell $'{}\t\x18'
for i in {{1..300}}; do [[ -s shown ]] && break; sleep 0.1; done
cat shown; rm shown)",
                                 typed));
  };
  EXPECT_EQ(completed("rubato trai"), "rubato train \n");
  EXPECT_EQ(completed("rubato train --rule ada"), "rubato train --rule adascale \n");
  EXPECT_EQ(completed("rubato train --rule=ada"), "rubato train --rule=adascale \n");
  EXPECT_EQ(completed("rubato train --data ten"), "rubato train --data tensors: \n");
  EXPECT_EQ(completed("rubato train --out di"), "rubato train --out digits\\ of\\ mine/\n");
}

TEST_F(InShell, FishCompletes) {
  if (!has_shell("fish")) GTEST_SKIP() << "there is no fish";
  setenv("HOME", folder_.path().c_str(), 1);
  const auto completed = [&](const std::string& typed) {
    const std::string file = folder_.write(
        "script.fish", fmt::format("set PATH $PWD/bin $PATH\nrubato completion fish | source\n"
                                   "complete -C '{}'\n",
                                   typed));
    Lines words = lines_of(test::run_program("/usr/bin/fish", {file}, folder_.path()).out);
    for (std::string& word : words) word = word.substr(0, word.find('\t'));
    return words;
  };
  EXPECT_THAT(completed("rubato trai"), ElementsAre("train"));
  EXPECT_THAT(completed("rubato train --rule "), IsSupersetOf({"adascale", "linear"}));
  EXPECT_THAT(completed("rubato trace sh"), ElementsAre("show"));
  EXPECT_THAT(completed("rubato train --rule=ada"), ElementsAre("--rule=adascale"));
  EXPECT_THAT(completed("rubato train --out di"), ElementsAre("digits of mine/"));
}

}  // namespace
}  // namespace rubato
