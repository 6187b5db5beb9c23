// The pages of the documentation: their commands run, and their options, links and arguments exist.

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <rubato/runs/run_configuration.hpp>

#include "app/doc_commands.hpp"
#include "app/run_program.hpp"
#include "runs/config/run_option.hpp"
#include "support/error_of.hpp"
#include "support/idx_images.hpp"
#include "support/matchers.hpp"
#include "support/sanitizers.hpp"
#include "support/temp_folder.hpp"
#include "tensorboard/event_reader.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using test::ProgramResult;
using test::read_file;
using test::TempFolder;

const fs::path kDocs = RUBATO_DOCS;

std::string readme() {
  return read_file(kDocs / "../README.md");
}

// Every page, with the README.
std::vector<fs::path> pages() {
  std::vector<fs::path> all{kDocs / "../README.md"};
  for (const auto& entry : fs::directory_iterator(kDocs)) {
    if (entry.path().extension() == ".md") all.push_back(entry.path());
  }
  return all;
}

// The first group of every match, in order.
std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match) {
    found.push_back(match->str(1));
  }
  return found;
}

// A page whose commands run in one folder, one after the other.
struct Page {
  std::string name;
  // Models of libtorch are trained, or small ones for longer than a sanitizer has time for.
  bool needs_torch = false;

  friend std::ostream& operator<<(std::ostream& out, const Page& page) { return out << page.name; }
};

class DocCommands : public testing::TestWithParam<Page> {};

TEST_P(DocCommands, Run) {
  const auto& [name, needs_torch] = GetParam();
  if (needs_torch && !RUBATO_TORCH) GTEST_SKIP() << "this build is without libtorch";
  const std::string page = read_file(kDocs / (name + ".md"));
  const TempFolder folder;
  for (const std::string& source : matches(page, "```python export\n([^`]*)```")) {
    folder.write("export.py", source);
    if (test::run_program("/usr/bin/python3", {"-c", "import torch"}).code != 0) {
      GTEST_SKIP() << "/usr/bin/python3 has no module torch here";
    }
    const ProgramResult python =
        test::run_program("/usr/bin/python3", {"export.py"}, folder.path());
    ASSERT_EQ(python.code, 0) << python.err;
  }
  test::run_commands_of(page, folder);
}

INSTANTIATE_TEST_SUITE_P(Pages, DocCommands,
                         testing::Values(Page{"cluster"}, Page{"coming-from"},
                                         Page{"compare", true}, Page{"going-back", true},
                                         Page{"models", true}, Page{"policies"}, Page{"runs", true},
                                         Page{"traces"}, Page{"watching"}),
                         [](const auto& page) {
                           return std::regex_replace(page.param.name, std::regex("-"), "_");
                         });

// With docs/records.md the page has every curve that its commands write.
TEST(TensorBoardDoc, HasCommandsThatRunAndEveryCurve) {
  const std::string page = read_file(kDocs / "tensorboard.md");
  const TempFolder folder;
  test::run_commands_of(page, folder);
  const auto events = test::read_folder(folder.path() / "runs/linear");
  const auto curves = test::curves_of(events);
  EXPECT_GT(curves.size(), 15U);
  const std::string tags = page + read_file(kDocs / "records.md");
  for (const auto& [tag, points] : curves) EXPECT_THAT(tags, HasSubstr("`" + tag + "`"));
  EXPECT_TRUE(std::ranges::any_of(events, [](const auto& e) { return !e.histograms.empty(); }));
  EXPECT_EQ(test::event_files(folder.path() / "rules/runs").size(), 1U);
}

TEST(Readme, ItsCommandsDoWhatItSays) {
  if (!RUBATO_TORCH) GTEST_SKIP() << "this build is without libtorch";
  const TempFolder folder;
  const std::string out = test::run_commands_of(readme(), folder);
  // The numbers may depend on the CPU's kernels.
  for (const char* line : {", tuned for the baseline and used by all\n",
                           "trace spot:most=32,seed=1\n", "to the baseline  p (Holm)  verdict\n"}) {
    EXPECT_THAT(readme(), HasSubstr(line));
    EXPECT_THAT(out, HasSubstr(line));
  }
  // So may which of rules that are tied comes first.
  const std::string best = "\n(Best: [^\n]*adascale[^\n]*)\n";
  EXPECT_EQ(matches(readme(), best).size(), 1U);
  EXPECT_EQ(matches(out, best).size(), 1U) << out;
}

// A command with a word in capitals is to be completed by the reader.
TEST(Readme, ItsTableHasCommandsThatRun) {
  if (!RUBATO_TORCH) GTEST_SKIP() << "this build is without libtorch";
  const TempFolder folder;
  const auto commands = matches(readme(), R"(\| `rubato ([^`A-Z]+)` \|)");
  EXPECT_FALSE(commands.empty());
  for (const std::string& command : commands) {
    // The doctor may find something.
    if (command == "doctor") {
      EXPECT_THAT(test::rubato("doctor", folder.path()).out, HasSubstr("oneTBB"));
    } else {
      test::run_command(command, folder);
    }
  }
}

// A real run of the commands takes hours: this one has small images, one comparison and one seed.
TEST(FindingsDoc, HasCommandsThatRun) {
  if (test::kSanitized) GTEST_SKIP() << "takes minutes with a sanitizer";
  const fs::path shared = RUBATO_SHARED_DIR "/data";
  if (!fs::exists(shared / "traces")) GTEST_SKIP() << "no " << (shared / "traces").string();
  if (test::shell("command -v python3").code != 0) GTEST_SKIP() << "no python3 for the scripts";
  const std::string doc = read_file(kDocs / "findings.md");
  ASSERT_THAT(doc, HasSubstr("\n$ bench/findings/run build/release/rubato DATA findings\n"));
  ASSERT_THAT(doc, HasSubstr("\n$ bench/findings/tables findings\n"));
  for (const char* const line : {"writes this -->\n|", "|\n<!-- to here -->\n"}) {
    ASSERT_THAT(doc, HasSubstr(line));
  }

  const TempFolder folder;
  for (const char* name : {"data/mnist", "data/fashion-mnist"}) {
    test::write_idx_images(folder, name, "train", 4096, 12);
    test::write_idx_images(folder, name, "t10k", 100, 12);
  }
  fs::create_directory_symlink(shared / "traces", folder.path() / "data/traces");
  const auto script = [&](const std::string& command) {
    return test::shell(fmt::format("'{}'/{}", RUBATO_FINDINGS, command), folder.path());
  };
  const auto run = [&](const std::string& command) {
    const ProgramResult result = script(command);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  };
  const std::string part = " data findings mlp/sgd-cosine --seeds 1 --rates 1";
  EXPECT_THAT(run("run \"$0\"" + part), HasSubstr("39 runs"));
  EXPECT_THAT(run("run \"$0\"" + part + " --cost"), HasSubstr(" 0 runs"));
  const std::string tables = run("tables findings");
  for (const char* const line :
       {"| cell | rate | baseline | `constant` | `linear` | `root` | `adascale` | ",
        "\n| mlp, sgd, cosine | ", "\n| rule | constant | bamboo | saw | daily | 32 |\n"}) {
    EXPECT_THAT(tables, HasSubstr(line));
  }
  // Two searches of ten runs and one, and for five seeds two trunks with 24 forks each.
  EXPECT_THAT(run("jumps \"$0\" data findings --models mlp --optimizers SGD --cost"),
              testing::StartsWith("272 "));
  EXPECT_THAT(run("money --help"), HasSubstr("bench/findings/"));
}

TEST(FindingsDoc, HasScriptsThatFailWhereARateIsAnEndOrAnAnswerIsMissing) {
  if (test::shell("command -v python3").code != 0) GTEST_SKIP() << "no python3 for the scripts";
  const TempFolder folder;
  folder.write("rubato", R"(#!/bin/sh
while [ $# -gt 1 ]; do
  if [ "$1" = --out ]; then
    mkdir -p "$2"
    echo '{"tuning": [{"option": "lr", "taken": "3", "at_end": true}], "untuned": null}' >"$2/answer.json"
    echo '{"wall_seconds": 1}' >"$2/summary.json"
  fi
  shift
done
)");
  fs::permissions(folder.path() / "rubato", fs::perms::owner_all);
  fs::create_directories(folder.path() / "findings/traces");
  for (const char* const name : {"constant", "bamboo", "saw", "daily"}) {
    folder.write(fmt::format("findings/traces/{}.csv", name), "");
  }
  const ProgramResult result =
      test::shell(fmt::format("'{}/run' ./rubato data findings epochs --seeds 1", RUBATO_FINDINGS),
                  folder.path());
  EXPECT_EQ(result.code, 1) << result.out;
  EXPECT_THAT(result.err, HasSubstr("the best lr is at an end of those that were tried: 3\n"));

  folder.write("interrupted/readme/tuned/answer.json", "{}");
  const ProgramResult tables =
      test::shell(fmt::format("'{}/tables' interrupted", RUBATO_FINDINGS), folder.path());
  EXPECT_EQ(tables.code, 1);
  EXPECT_THAT(tables.err, HasSubstr("interrupted/readme: no answer in half, twice; "));
}

TEST(Docs, LinkToFilesThatExist) {
  for (const fs::path& page : pages()) {
    for (const std::string& link : matches(read_file(page), "\\]\\(([^)#: \n]+)(?:#[^)]*)?\\)")) {
      EXPECT_TRUE(fs::exists(page.parent_path() / link)) << page << ": " << link;
    }
  }
}

TEST(Docs, NameOptionsThatExist) {
  const std::string option = "(?:^|[^a-z-])(--[a-z][a-z-]*[a-z])(?![a-z_-])";
  // Options of other programs.
  std::set<std::string> known;
  for (const char* const of_others : {"--all" /*bootstrap*/,
                                      "--build",
                                      "--preset" /*cmake*/,
                                      "--bits",
                                      "--networks",
                                      "--quick",
                                      "--rounds",
                                      "--search",
                                      "--write" /*bench*/,
                                      "--redirects",
                                      "--tee",
                                      "--standalone",
                                      "--nproc-per-node" /*torchrun*/,
                                      "--rubato-traces",
                                      "--rubato-cases" /*pytest*/,
                                      "--from-literal" /*kubectl*/,
                                      "--sshlogin",
                                      "--workdir" /*parallel*/,
                                      "--array",
                                      "--cpus-per-task",
                                      "--dependency",
                                      "--requeue",
                                      "--signal",
                                      "--wait" /*sbatch*/,
                                      "--snakefile" /*snakemake*/,
                                      "--no-build-isolation" /*pip*/,
                                      "--system-site-packages",
                                      "--without-pip" /*venv*/,
                                      "--collector" /*node_exporter*/,
                                      "--build-arg",
                                      "--rm" /*podman*/,
                                      "--base" /*bench/step_cost*/,
                                      "--with",
                                      "--logdir" /*tensorboard*/}) {
    known.insert(of_others);
  }
  const auto help = [&](const std::string& command) {
    const std::string text = test::shell("\"$0\" " + command + " --help").out;
    for (const std::string& name : matches(text, option)) known.insert(name);
    return matches(text, "\n  ([a-z]+) ");
  };
  for (const std::string& command : help("")) {
    for (const std::string& part : help(command)) help(fmt::format("{} {}", command, part));
  }
  std::size_t named = 0;
  for (const fs::path& page : pages()) {
    for (const std::string& name : matches(read_file(page), option)) {
      EXPECT_TRUE(known.contains(name)) << page << ": " << name;
      ++named;
    }
  }
  EXPECT_GT(named, 500U);
}

// The rest of the row of a table that begins with `name`, or with several names.
std::string row_of(const std::string& page, const Family& family, const std::string& name) {
  const std::size_t heading = page.find("(`" + family.option + "`)");
  const auto rows =
      matches(page.substr(heading == std::string::npos ? 0 : heading),
              "\n\\| (?:`[a-z0-9-]+`, )*`" + name + "`(?:, `[a-z0-9-]+`)* \\|([^\n]*)");
  return rows.empty() ? "" : rows.front();
}

// "name=default" stands in the row of the strategy, or has a row of its own.
void expect_argument(const std::string& page, const std::string& row, const Argument& argument) {
  const std::string code = argument.fallback.empty() ? "`(" + argument.name + ")(?:=[^`]*)?`"
                                                     : "`" + argument.name + "=([^`\\\\]+)[^`]*`";
  auto values = matches(row, code);
  if (values.empty()) values = matches(page, "\n\\| " + code + " \\|");
  ASSERT_FALSE(values.empty()) << argument.name << " is not in: " << row;
  if (argument.fallback.empty() || values.front() == argument.fallback) return;
  EXPECT_EQ(std::stod(values.front()), std::stod(argument.fallback)) << argument.name;
}

const std::vector<std::string> kTechniques{"rules", "schedules", "optimizers", "precisions",
                                           "initializers"};

TEST(Docs, HaveEveryArgumentWithItsDefault) {
  struct {
    std::string page;
    std::vector<std::string> families;
  } const all[]{{"policies", {"batch-policies"}},
                {"traces", {"generators", "policies"}},
                {"techniques", kTechniques}};
  for (const auto& [name, families] : all) {
    const std::string page = read_file(kDocs / (name + ".md"));
    for (const std::string& family_name : families) {
      const Family family = rubato::family(family_name);
      for (const Strategy& strategy : family.strategies) {
        SCOPED_TRACE(family_name + ": " + strategy.name);
        const std::string row = row_of(page, family, strategy.name);
        EXPECT_NE(row, "");
        for (const Argument& argument : strategy.arguments) {
          // Nearly all techniques have these; the text says so.
          if (argument.name == "ramp" || argument.name == "after") continue;
          expect_argument(page, row, argument);
        }
      }
    }
  }
}

// Whether an option of one of these families accepts it.
bool is_accepted(const std::string& text) {
  return std::ranges::any_of(kTechniques, [&](const std::string& name) {
    return error_of([&] {
             RunConfiguration configuration;
             run_option(family(name).option.substr(2)).set(configuration, text);
           }) == "no error";
  });
}

// Whether a technique of that name has that argument.
bool takes(const std::string& name, const std::string& argument) {
  for (const std::string& family_name : kTechniques) {
    for (const Strategy& strategy : family(family_name).strategies) {
      const auto is_it = [&](const Argument& one) { return one.name == argument; };
      if (strategy.name == name && std::ranges::any_of(strategy.arguments, is_it)) return true;
    }
  }
  return false;
}

TEST(TechniquesDoc, HasExamplesThatAreAccepted) {
  // "warmup:length=5+cosine:total=35,after=5", but not "NAME:KEY=VALUE" or code.
  const auto examples =
      matches(read_file(kDocs / "techniques.md"), "`([a-z][a-z-]*:[a-z-]+=[^`]*)`");
  EXPECT_FALSE(examples.empty());
  for (const std::string& text : examples) EXPECT_TRUE(is_accepted(text)) << text;
}

// Every `key=value` in a row is an argument of the names in that row.
TEST(TechniquesDoc, HasArgumentsThatExist) {
  std::size_t arguments = 0;
  for (const std::string& row : matches(read_file(kDocs / "techniques.md"),
                                        R"(\n(\| `[a-z0-9-]+`(?:, `[a-z0-9-]+`)* \|[^\n]*))")) {
    const std::size_t end_of_names = row.find(" |", 1);
    for (const std::string& name : matches(row.substr(0, end_of_names), "`([a-z0-9-]+)`")) {
      for (const std::string& argument :
           matches(row.substr(end_of_names), "`([a-z0-9-]+)=[^`]+`")) {
        EXPECT_TRUE(takes(name, argument)) << argument << " of " << name;
        ++arguments;
      }
    }
  }
  EXPECT_GE(arguments, 25U);
}

}  // namespace
}  // namespace rubato
