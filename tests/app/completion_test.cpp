// `rubato completion`: what it offers, and what bash, zsh and fish make of it.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <rubato/runs/run_configuration.hpp>

#include "app/run_program.hpp"
#include "runs/config/run_option.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using test::ProgramResult;
using test::TempFolder;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

using Lines = std::vector<std::string>;

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// What is offered for the last of the words, without the help.
Lines offered(Lines words) {
  words.insert(words.begin(), {"completion", "--"});
  const ProgramResult result = test::rubato(words);
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
  Lines all = lines_of(result.out);
  for (std::string& line : all) line = line.substr(0, line.find('\t'));
  return all;
}

// The commands that the help lists under its heading.
Lines commands_of(const Lines& words) {
  Lines arguments = words;
  arguments.emplace_back("--help");
  std::istringstream help(test::rubato(arguments).out);
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

TEST(Completions, HaveEveryCommandAndEveryOption) {
  const Lines commands = commands_of({});
  EXPECT_THAT(commands, IsSupersetOf({"train", "trace", "completion"}));
  EXPECT_EQ(offered({""}), commands);
  for (const std::string& command : commands) {
    const Lines own = commands_of({command});
    if (!own.empty()) {
      EXPECT_EQ(offered({command, ""}), own);
    }
    for (const std::string& name : own.empty() ? Lines{""} : own) {
      Lines words{command};
      if (!name.empty()) words.push_back(name);
      Lines help = words;
      help.emplace_back("--help");
      const Lines options = options_in(test::rubato(help).out);
      EXPECT_FALSE(options.empty());
      words.emplace_back("--");
      EXPECT_EQ(offered(words), options) << command << " " << name;
    }
  }
}

TEST(Completions, AreThoseThatBeginAsTheWordDoes) {
  EXPECT_THAT(offered({"tr"}), ElementsAre("train", "trace"));
  EXPECT_THAT(offered({"train", "--hist"}), ElementsAre("--histograms", "--histograms-every"));
  EXPECT_THAT(offered({"train", "--cores", "8", "--nest"}), ElementsAre("--nesterov"));
  EXPECT_THAT(offered({"-"}), ElementsAre("--help", "--version"));
  EXPECT_THAT(offered({"unknown", "--"}), IsEmpty());
  EXPECT_THAT(offered({"train", "--cores", ""}), IsEmpty()) << "a number is the user's to choose";
}

TEST(Completions, HaveTheNamesThatOptionsTake) {
  EXPECT_EQ(offered({"train", "--rule", ""}),
            (Lines{"constant", "linear", "root", "linear-momentum", "adascale", "lbsgd"}));
  EXPECT_THAT(offered({"train", "--rule=ada"}), ElementsAre("--rule=adascale"));
  EXPECT_THAT(offered({"train", "--assignment", ""}), ElementsAre("contiguous", "strided"));
  EXPECT_THAT(offered({"train", "--exact="}), ElementsAre("--exact=true", "--exact=false"));
  EXPECT_THAT(offered({"train", "--trace", "sp"}), ElementsAre("spot", ":files "));
  EXPECT_THAT(offered({"trace", "show", "sp"}), ElementsAre("spot", ":files "));
  EXPECT_THAT(offered({"list", "rec"}), ElementsAre("records"));
  EXPECT_THAT(offered({"completion", ""}), ElementsAre("bash", "zsh", "fish"));
  EXPECT_THAT(offered({"train", "--checkpoint-every", ""}), IsEmpty()) << "a number comes first";
}

TEST(Completions, OfANameSayWhatItIs) {
  const ProgramResult result = test::rubato({"completion", "--", "train", "--sampler", ""});
  for (const Strategy& sampler : families()[3].strategies) {
    EXPECT_THAT(result.out, HasSubstr(fmt::format("{}\t{}\n", sampler.name, sampler.help)));
  }
}

TEST(Completions, HavePathsWhereAnOptionTakesThem) {
  EXPECT_THAT(offered({"train", "--config", "x"}), ElementsAre(":files "));
  EXPECT_THAT(offered({"train", "--out", ""}), ElementsAre(":folders "));
  EXPECT_THAT(offered({"train", "--out="}), ElementsAre(":folders --out="));
  EXPECT_THAT(offered({"train", "--data", "mni"}), ElementsAre("mnist:", "mnist"));
  EXPECT_THAT(offered({"train", "--data", "mnist:here/"}), ElementsAre(":folders mnist:"));
  EXPECT_THAT(offered({"train", "--data=csv:a+b"}), ElementsAre(":files --data=csv:"));
  EXPECT_THAT(offered({"eval", "ru"}), ElementsAre(":folders ")) << "the run of --run";
}

// A checkpoint is a file; the run that it is of is not.
TEST(Completions, AreFoldersWhereARunIsMeant) {
  EXPECT_THAT(offered({"train", "--resume", ""}), ElementsAre(":folders "));
  EXPECT_THAT(offered({"train", "--resume", "run/checkpoints/st"}), ElementsAre(":files "));
  EXPECT_THAT(offered({"compare", "--resume", ""}), ElementsAre(":folders "));
  EXPECT_THAT(offered({"train", "--weights", ""}), ElementsAre(":files ")) << "FILE|RUN";
  EXPECT_THAT(offered({"eval", "--json", "ru"}), ElementsAre(":folders "));
}

TEST(Completions, GoOnBehindNames) {
  EXPECT_THAT(offered({"train", "--rule", "adascale:sm"}), ElementsAre("adascale:smoothing="));
  EXPECT_THAT(offered({"train", "--rule=adascale:"}), Contains("--rule=adascale:smoothing="));
  EXPECT_THAT(offered({"train", "--rule", "adascale:smoothing=0.9,"}),
              Not(Contains("adascale:smoothing=0.9,smoothing=")));
  EXPECT_THAT(offered({"train", "--optimizer", "adam:beta1=0.8,beta"}),
              ElementsAre("adam:beta1=0.8,beta2="));
  EXPECT_THAT(offered({"train", "--augment", "flip+shift:"}),
              Contains(testing::StartsWith("flip+shift:")));
  EXPECT_THAT(offered({"train", "--schedule", "plateau:threshold-mode=r"}),
              ElementsAre("plateau:threshold-mode=rel"));
  EXPECT_THAT(offered({"compare", "--rule", "linear,adascale:sm"}),
              ElementsAre("linear,adascale:smoothing="));
}

TEST(Completions, GoOnBehindWhatDividesValues) {
  EXPECT_THAT(offered({"compare", "--rule", "linear,ada"}), ElementsAre("linear,adascale"));
  EXPECT_THAT(offered({"train", "--rule", "linear,ada"}), IsEmpty()) << "only one is taken";
  EXPECT_THAT(offered({"train", "--augment", "shift+fl"}), ElementsAre("shift+flip"));
}

TEST(Completions, OfAnotherCommandStandBehindDashes) {
  EXPECT_THAT(offered({"launch", "--hosts", "2", "--", ""}), ElementsAre("train"));
  EXPECT_THAT(offered({"launch", "--", "train", "--rule", "ada"}), ElementsAre("adascale"));
}

// Whatever is offered is accepted; a name that needs arguments ends with a colon.
TEST(Completions, AreAcceptedByTheirOptions) {
  int accepted = 0;
  for (const RunOption& option : run_options()) {
    for (const std::string& value : offered({"train", "--" + option.name, ""})) {
      if (value.starts_with(':') || value.ends_with(':')) continue;
      RunConfiguration run;
      EXPECT_NO_THROW(option.set(run, value)) << option.name << " " << value;
      ++accepted;
    }
  }
  EXPECT_GT(accepted, 80);
  EXPECT_THAT(offered({"train", "--schedule", "multi"}), ElementsAre("multi-step:"));
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
    EXPECT_THAT(script, HasSubstr("completion -- "));
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

// The words of a line as bash divides them, with the cursor at its end.
class InBash : public InShell {
 protected:
  [[nodiscard]] Lines replies(const Lines& words, const std::string& line) const {
    std::string quoted;
    for (const std::string& word : words) quoted += fmt::format(" '{}'", word);
    return lines_of(in("bash", fmt::format("source <(rubato completion bash)\n"
                                           "COMP_WORDS=({})\n"
                                           "COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n"
                                           "COMP_LINE='{}'\n"
                                           "COMP_POINT=${{#COMP_LINE}}\n"
                                           "complete -p rubato\n"
                                           "_rubato && printf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
                                           quoted, line)));
  }
};

TEST_F(InBash, WordsAreCompleted) {
  const std::string hooked = "complete -F _rubato rubato";
  EXPECT_THAT(replies({"rubato", "tr"}, "rubato tr"), ElementsAre(hooked, "train", "trace"));
  EXPECT_THAT(replies({"rubato", "train", "--rule", "l"}, "rubato train --rule l"),
              ElementsAre(hooked, "linear", "linear-momentum", "lbsgd"));
  EXPECT_THAT(replies({"rubato", "train", "--config", ""}, "rubato train --config "),
              IsSupersetOf({"config.toml", "table.csv", "digits of mine"}));
  EXPECT_THAT(replies({"rubato", "train", "--out", ""}, "rubato train --out "),
              AllOf(Contains("bin"), Contains("digits of mine"), Not(Contains("config.toml"))));
}

// bash divides at '=' and ':', and replaces what stands behind them alone.
TEST_F(InBash, WordsThatBashDividesAreCompleted) {
  EXPECT_THAT(replies({"rubato", "train", "--rule", "=", "ada"}, "rubato train --rule=ada"),
              Contains("adascale"));
  EXPECT_THAT(
      replies({"rubato", "train", "--data", "csv", ":", "ta"}, "rubato train --data csv:ta"),
      Contains("table.csv"));
  EXPECT_THAT(replies({"rubato", "train", "--data", "csv", ":"}, "rubato train --data csv:"),
              Contains("table.csv"));
  EXPECT_THAT(
      replies({"rubato", "train", "--data", "mnist", ":", "di"}, "rubato train --data mnist:di"),
      AllOf(Contains("digits of mine"), Not(Contains("table.csv"))));
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
  EXPECT_EQ(completed("rubato train --data ten"), "rubato train --data tensors:\n");
  EXPECT_EQ(completed("rubato train --data csv:ta"), "rubato train --data csv:table.csv \n");
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
  EXPECT_THAT(completed("rubato train --rule "),
              AllOf(Contains("adascale"), Not(Contains("bin/"))));
  EXPECT_THAT(completed("rubato train --rule=ada"), ElementsAre("--rule=adascale"));
  EXPECT_THAT(completed("rubato train --data csv:ta"), ElementsAre("csv:table.csv"));
  EXPECT_THAT(completed("rubato train --out di"), ElementsAre("digits of mine/"));
}

}  // namespace
}  // namespace rubato
