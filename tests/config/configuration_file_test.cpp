#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <rubato/runs/run_configuration.hpp>

#include "config/other_value.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

RunConfiguration parsed(std::string_view text) {
  return parse_configuration(text, "c.toml");
}

std::string error_in(std::string_view text) {
  return error_of([&] { return parsed(text); });
}

// Texts, and what is said of them after the name of the file.
using Errors = std::vector<std::pair<std::string_view, std::string_view>>;

void expect_errors(const Errors& errors, std::string_view accepted = "") {
  for (const auto& [text, error] : errors) {
    EXPECT_EQ(error_in(text), fmt::format("c.toml:{}{}", error, accepted));
  }
}

constexpr std::string_view kAcceptedToml =
    "; accepted: TOML, a line such as 'cores = 8' for each option";

TEST(ConfigurationFile, IsToml) {
  const RunConfiguration configuration = parsed(
      "# a comment\n"
      "cores = 1_6 # sixteen\n"
      "lr=1e-2\n"
      "weight-decay = 1 # a whole number is a number\n"
      "\trule = \"root:ramp=\\u0033\"\r\n"
      "data = 'mnist:a \"b\" #c'\n"
      "monitor = '''conv1.*'''\n"
      "no-decay = \"\"\"\n*.bias\"\"\"\n"
      "\"nesterov\" = true\n"
      "epochs = 0x0A\n");
  EXPECT_EQ(configuration.cores, 16);
  EXPECT_EQ(configuration.learning_rate, 0.01);
  EXPECT_EQ(configuration.weight_decay, 1);
  EXPECT_EQ(configuration.rule, "root:ramp=3");
  EXPECT_EQ(configuration.data, "mnist:a \"b\" #c");
  EXPECT_EQ(configuration.monitor, "conv1.*");
  EXPECT_EQ(configuration.no_decay, "*.bias");
  EXPECT_TRUE(configuration.nesterov);
  EXPECT_EQ(configuration.epochs, 10);
}

TEST(ConfigurationFile, AcceptsWhatEditorsLeave) {
  EXPECT_EQ(parsed(""), RunConfiguration());
  EXPECT_EQ(parsed("\n\n"), RunConfiguration());
  const RunConfiguration configuration = parsed(
      "\xEF\xBB\xBF"
      "cores = 3\r\n\r\nrule = \"root\"\r\n");
  EXPECT_EQ(configuration.cores, 3);
  EXPECT_EQ(configuration.rule, "root");
}

// A number or a name, and numbers beyond TOML's.
TEST(ConfigurationFile, AcceptsNumbersInQuotesWhereTheyBelong) {
  EXPECT_EQ(parsed("trace = 128\n").trace, "128");
  EXPECT_EQ(parsed("trace = \"128\"\n").trace, "128");
  EXPECT_EQ(parsed("target-accuracy = 97.5\n").target_accuracy, AccuracyTarget{.percent = 97.5});
  EXPECT_TRUE(parsed("target-accuracy = \"97.5,best\"\n").target_accuracy->best);
  EXPECT_EQ(parsed("seed = \"18446744073709551615\"\n").seed, 18446744073709551615U);
  EXPECT_EQ(parsed("seed = 9223372036854775807\n").seed, 9223372036854775807U);
  EXPECT_THAT(error_in("seed = 18446744073709551615\n"), StartsWith("c.toml:1: "));
}

TEST(ConfigurationFile, ReadsBackEveryOption) {
  for (const RunOption& option : run_options()) {
    const RunConfiguration configuration = test::with_other_value(option);
    EXPECT_EQ(parsed(to_toml(configuration)), configuration) << to_toml(configuration);
  }
  EXPECT_EQ(parsed(to_toml(RunConfiguration())), RunConfiguration());
}

TEST(ConfigurationFile, ReadsBackEveryText) {
  for (const std::string text :
       {"plain", "a b#c", "qu\"ote's", "back\\slash", "tab\there", "new\nline", "return\rhere",
        "control \x01\x1B\x7F", "umlaut \xC3\xA4", "'''", "\"\"\"", "\\u0041", "= 3"}) {
    RunConfiguration configuration;
    configuration.monitor = text;
    EXPECT_EQ(parsed(to_toml(configuration)).monitor, text) << to_toml(configuration);
  }
  RunConfiguration configuration;
  configuration.monitor = "\xFF";
  EXPECT_EQ(
      error_of([&] { return to_toml(configuration); }),
      "--monitor: a configuration file cannot hold text that is not UTF-8; accepted: names in "
      "UTF-8");
}

// Empty text is that an option is not set, which a file can only say of one whose default says it.
TEST(ConfigurationFile, ReadsBackEmptyTextOrRejectsIt) {
  int rejected = 0;
  for (const RunOption& option : run_options()) {
    SCOPED_TRACE(option.name);
    RunConfiguration configuration;
    try {
      option.set(configuration, "");
    } catch (const Error&) {
      ++rejected;
      continue;
    }
    EXPECT_EQ(parsed(to_toml(configuration)), configuration);
  }
  EXPECT_GT(rejected, 0);
}

TEST(ConfigurationFile, ReadsBackEveryNumber) {
  for (const double number : {1.0, 0.1, 1e-5, 5e-324, 1e16, 1e299, 123456789.125, 1e22 / 3}) {
    RunConfiguration configuration;
    configuration.learning_rate = number;
    EXPECT_EQ(parsed(to_toml(configuration)).learning_rate, number) << to_toml(configuration);
  }
  for (const std::uint64_t seed : {0ULL, 9223372036854775807ULL, 9223372036854775808ULL, ~0ULL}) {
    RunConfiguration configuration;
    configuration.seed = seed;
    EXPECT_EQ(parsed(to_toml(configuration)).seed, seed) << to_toml(configuration);
  }
}

// What earlier versions wrote.
TEST(ConfigurationFile, ReadsFilesOfEarlierVersions) {
  const RunConfiguration configuration = parsed(
      "# Reproduces the run: rubato train --config FILE\n"
      "data = \"digits\"\ntrace = \"elastic\"\non-trace-end = \"cycle\"\ncores = 8\n"
      "label-smoothing = 0\nlr = 0.01\nmomentum = 0.5\nnesterov = false\nweight-decay = 1e-05\n"
      "lookahead-start = \"before\"\niterations = 10000\nseed = 42\nkernels = \"native\"\n"
      "checkpoint-every = \"60seconds\"\ntarget-accuracy = 99.5\nlog-noise = false\n");
  EXPECT_EQ(configuration.weight_decay, 1e-5);
  EXPECT_EQ(configuration.iterations, 1e4);
  EXPECT_EQ(configuration.on_trace_end, TraceEnd::cycle);
}

TEST(ConfigurationFile, SaysThatAStringNeedsQuotes) {
  expect_errors({{"cores = 8\nrule = linear\n",
                  "2: rule: linear is not a TOML value; accepted: a string in quotes: rule = "
                  "\"linear\""},
                 {"checkpoint-every = 100steps # often\n",
                  "1: checkpoint-every: 100steps is not a TOML value; accepted: a string in "
                  "quotes: checkpoint-every = \"100steps\""}});
  // Some of the words begin like one of TOML's.
  for (const auto& [key, word] : Errors{{"trace", "t.csv"},
                                        {"schedule", "warmup:length=1+step:every=2"},
                                        {"data", "mnist:/images"},
                                        {"watch", "none"},
                                        {"watch", "test-loss"},
                                        {"watch", "fp16"},
                                        {"watch", "inexact"},
                                        {"watch", "native"}}) {
    EXPECT_THAT(error_in(fmt::format("{} = {}\n", key, word)),
                HasSubstr(fmt::format("{} = \"{}\"", key, word)));
  }
}

TEST(ConfigurationFile, RejectsWhatIsNoToml) {
  for (const std::string line :
       {"cores 8", "= 8", "a b = 8", "\x1B[31m = 8", "lr =", "lr = \"x", "lr = 'x", "lr = \"x\" y",
        "rule = \"\\q\"", "rule = \"x\\", "lr = # nothing", "rule = \"\xFF\"", "cores = {",
        "cores = [1, 2", "[train", "cores = 8 lr = 3"}) {
    const std::string error = error_in("epochs = 3\n" + line + "\n");
    EXPECT_THAT(error, AllOf(StartsWith("c.toml:"), EndsWith(std::string(kAcceptedToml)),
                             Not(HasSubstr("\x1B"))))
        << line;
    EXPECT_THAT(error, AnyOf(StartsWith("c.toml:2: "), StartsWith("c.toml:3: "))) << line;
  }
}

// Of each range of letters in which the parser looks for spaces.
TEST(ConfigurationFile, RejectsOtherLettersOutsideOfText) {
  for (const std::string letter : {"\u00e9", "\u0431", "\u1681", "\u3003", "\ufefe"}) {
    for (const char* const line : {"seed = 7{}", "seed = {}7", "seed{} = 7", "{}seed = 7",
                                   "seed {}= 7", "seed = 7 {}", "seed = [7{}]", "seed = true{}"}) {
      const std::string text = fmt::format(fmt::runtime(line), letter);
      EXPECT_THAT(error_in(text), StartsWith("c.toml:1: ")) << text;
    }
    EXPECT_EQ(parsed(fmt::format("data = \"csv:{0}\" # {0}", letter)).data, "csv:" + letter);
  }
}

TEST(ConfigurationFile, RejectsWhatNoOptionIs) {
  expect_errors({{"lr = 1\n[train]\ncores = 8\n", "2: 'train' is a table, which no option accepts"},
                 {"train.cores = 8\n", "1: 'train' is a table, which no option accepts"},
                 {"\ncores = {a = 8}\n", "2: 'cores' is a table, which no option accepts"},
                 {"cores = [\n8,\n9]\n", "1: 'cores' is an array, which no option accepts"},
                 {"[[cores]]\n", "1: 'cores' is an array, which no option accepts"},
                 {"\"a b\" = 8\n", "1: there is no name before the '='"},
                 {"\"\\u001B[31m\" = 8\n", "1: there is no name before the '='"},
                 {"cores = 8\n\ncores = 9\n",
                  "3: Error while parsing key-value pair: cannot redefine existing integer "
                  "'cores'"}},
                kAcceptedToml);
  for (const char* const date : {"1979-05-27", "07:32:00", "1979-05-27T07:32:00Z"}) {
    expect_errors({{fmt::format("epochs = {}\n", date),
                    "1: 'epochs' is a date or time, which no option accepts"}},
                  kAcceptedToml);
  }
}

TEST(ConfigurationFile, RejectsOtherValues) {
  expect_errors(
      {{"\nepochs = \"5\"\n",
        "2: epochs: \"5\" is a string; accepted: a whole number from 1 to 1000000"},
       {"lr = \"0.1\"\n", "1: lr: \"0.1\" is a string; accepted: a number greater than 0"},
       {"nesterov = \"true\"\n", "1: nesterov: \"true\" is a string; accepted: true, false"},
       {"nesterov = 1\n", "1: nesterov: '1' is neither true nor false; accepted: true, false"},
       {"epochs = 5.0\n",
        "1: epochs: '5.0' is not a whole number; accepted: a whole number from 1 to 1000000"},
       {"epochs = true\n",
        "1: epochs: 'true' is not a number; accepted: a whole number from 1 to 1000000"},
       {"lr = inf\n",
        "1: lr: 'inf' is out of range; accepted: a number greater than 0, up to 1e+300"},
       {"rule = 5\n", "1: rule: 5 is not a string; accepted: a string, such as rule = \"linear\""},
       {"watch = true\n",
        "1: watch: true is not a string; accepted: a string, such as watch = \"test-loss\""},
       {"trace = true\n",
        "1: trace: true is not a string; accepted: a string, such as trace = \"elastic\""},
       {"fault = 1\n",
        "1: fault: 1 is not a string; accepted: a string, such as fault = "
        "\"core=K,step=N[,substep=M]\""},
       {"trace = ''", "1: trace: is empty; accepted: FILE|zone:FILE|N|elastic|GENERATOR"},
       {"seed = \"42\"\n",
        "1: seed: \"42\" is a string; accepted: a whole number from 0 to 18446744073709551615"},
       {"\ncores = 0\n",
        "2: cores: '0' is out of range; accepted: a whole number from 1 to 1048576"}});
  // The first in the file, not in the alphabet.
  EXPECT_THAT(error_in("rule = \"lin\"\ncores = 0\n"),
              StartsWith("c.toml:1: rule: unknown rule 'lin'; did you mean 'linear'? "));
}

TEST(ConfigurationFile, RejectsUnknownOptions) {
  expect_errors({{"cores = 8\nepoch = 4\n", "2: unknown option 'epoch'; did you mean 'epochs'?"}});
  const std::array<std::string_view, 2> arguments_only{"out", "epochs"};
  const auto error = [&](std::string_view text) {
    return error_of([&] { return parse_configuration(text, "c.toml", arguments_only); });
  };
  EXPECT_EQ(error("epochs = 8\nout = \"x\"\n"), "c.toml:2: out is accepted as an argument only");
  EXPECT_EQ(error("epochs = 8\n"), "no error");
}

// The parser's stack is that of this process.
TEST(ConfigurationFile, RejectsTablesWithoutEnd) {
  for (const std::size_t depth : {1'000UL, 4'096UL, 500'000UL}) {
    std::string key = "a";
    for (std::size_t i = 0; i < depth; ++i) key += ".a";
    EXPECT_THAT(error_in(key + " = 1\n"), StartsWith("c.toml:"));
    EXPECT_THAT(error_in("[" + key + "]\n"), StartsWith("c.toml:"));
  }
  EXPECT_THAT(error_in("a = " + std::string(100'000, '[') + "\n"), StartsWith("c.toml:1: "));
}

TEST(ConfigurationFile, RejectsWhatIsNoFile) {
  const test::TempFolder folder;
  for (const auto& [path, reason] : {std::pair(folder.path(), "Is a directory"),
                                     {folder.path() / "none.toml", "No such file or directory"}}) {
    EXPECT_EQ(error_of([&path = path] { return read_configuration(path); }),
              "cannot read the configuration " + path.string() + ": " + reason +
                  "; accepted: a file of lines such as 'cores = 8'");
  }
  const auto large = folder.write("c.toml", std::string((1U << 20) + 1, '\n'));
  EXPECT_EQ(error_of([&] { return read_configuration(large); }),
            large.string() + ": is larger than 1 MiB; accepted: a configuration");
}

// `--config <(...)` names such a pipe.
TEST(ConfigurationFile, ComesOutOfAPipe) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  constexpr std::string_view kText = "cores = 3\ntrace = \"t.csv\"\n";
  ASSERT_EQ(write(ends[1], kText.data(), kText.size()), std::ssize(kText));
  close(ends[1]);
  const RunConfiguration read = read_configuration("/dev/fd/" + std::to_string(ends[0]));
  close(ends[0]);
  EXPECT_EQ(read.cores, 3);
  EXPECT_EQ(read.trace.text(), "t.csv") << "in the working folder";
}

// The advice would be accepted.
TEST(ConfigurationFile, AdvisesWhatTheOptionTakes) {
  for (const auto& [text, accepted] :
       Errors{{"lr = 0,5", ": 0,5 is not a TOML value; accepted: lr = 0.5"},
              {"lr = .5", ": .5 is not a TOML value; accepted: lr = 0.5"},
              {"cores = 08", ": 08 is not a TOML value; accepted: cores = 8"},
              {"lr = 1,000", "accepted: a number greater than 0"},
              {"epochs = ten", "accepted: a whole number from 1 to 1000000"},
              {"schedule = 30,60", "schedule = \"30,60\""},
              {"nesterov = yes", "accepted: true, false"}}) {
    EXPECT_THAT(error_in(text), EndsWith(std::string(accepted)));
  }
}

TEST(ConfigurationFile, HasPathsRelativeToItsFolder) {
  const test::TempFolder folder;
  const auto file = folder.write("run/config.toml", "trace = \"t.csv\"\ndata = \"mnist:images\"\n");
  const RunConfiguration configuration = read_configuration(file);
  EXPECT_EQ(configuration.trace.text(), folder.path() / "run/t.csv");
  EXPECT_EQ(configuration.data, "mnist:" + (folder.path() / "run/images").string());
  const auto built_in = folder.write("c.toml", "trace = 128\ndata = \"digits\"\n");
  EXPECT_EQ(read_configuration(built_in).trace, "128");
  EXPECT_EQ(read_configuration(built_in).data, "digits");
}

TEST(ConfigurationFile, HasPathsThatSurviveAMove) {
  RunConfiguration configuration;
  configuration.trace = "run/../run/t.csv";
  configuration.data = "mnist:./data";
  const std::string here = std::filesystem::current_path();
  const RunConfiguration moved = with_paths_from("run", configuration);
  EXPECT_EQ(moved.trace, "t.csv");
  EXPECT_EQ(moved.data, "mnist:" + here + "/data");
  // A file is not taken for what it is called.
  for (const std::string name : {"128", "elastic"}) {
    configuration.trace = "run/" + name;
    EXPECT_EQ(with_paths_from("run", configuration).trace, "./" + name);
    configuration.trace = name;
    EXPECT_EQ(with_paths_from("run", configuration).trace, name);
  }
}

}  // namespace
}  // namespace rubato
