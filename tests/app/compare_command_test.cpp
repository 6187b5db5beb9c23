// `rubato compare` as users run it: on the built-in digits with softmax regression, which takes a
// quarter of a second.

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "app/command_test.hpp"
#include "support/matchers.hpp"
#include "tensorboard/event_reader.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;

using test::ProgramResult;

class CompareCommand : public test::CommandTest {
 protected:
  [[nodiscard]] ProgramResult compare(const test::Words& arguments,
                                      const test::WhileRunning& during = {}) const {
    return rubato("compare" + arguments, during);
  }
  [[nodiscard]] nlohmann::json answer(const std::string& experiment) const {
    return json_in(experiment + "/answer.json");
  }
  // How many runs have ended, and whether another one has a checkpoint.
  struct Seen {
    std::ptrdiff_t ended = 0;
    bool checkpoint = false;
  };
  [[nodiscard]] Seen look(const std::string& experiment) const {
    Seen seen;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(file(experiment) / "runs", error)) {
      if (fs::exists(entry.path() / "summary.json")) ++seen.ended;
    }
    for (fs::recursive_directory_iterator it(file(experiment) / "workers", error), end;
         !error && it != end; it.increment(error)) {
      seen.checkpoint = seen.checkpoint || it->path().extension() == ".safetensors";
    }
    return seen;
  }
  // Waits until so many runs have ended and another one has a checkpoint. False where the
  // experiment has ended instead: this machine is fast, or the test was held up.
  [[nodiscard]] bool reaches(const std::string& experiment, std::ptrdiff_t ended) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (std::chrono::steady_clock::now() < end && !fs::exists(file(experiment) / "answer.md")) {
      const Seen seen = look(experiment);
      if (seen.ended >= ended && seen.checkpoint) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
};

// The names of all files below a folder.
std::set<std::string> files_in(const fs::path& folder) {
  std::set<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    files.insert(entry.path().lexically_relative(folder).string());
  }
  return files;
}

std::string design_of(const std::string& out, int epochs) {
  return fmt::format(
      "--model softmax --rule linear,root --seed 1..2 --epochs {} --lr 0.02 --target 80 --out {} "
      "--jobs 1 --checkpoint-every 10steps",
      epochs, out);
}

// Of so many epochs that an experiment is caught in the middle: `caught` does something to one in
// the middle and says whether it was. Tries more of them until it is.
template <class Caught>
int epochs_to_be_caught(const Caught& caught) {
  constexpr int kMost = 1000;
  int epochs = 12;
  while (!caught(epochs) && epochs < kMost) epochs *= 5;
  EXPECT_LT(epochs, kMost) << "the experiment does not come so far, or ends as if nothing happened";
  return epochs;
}

// `tensorboard --logdir t/runs` shows the axes, and how accurate the runs were in the end.
TEST_F(CompareCommand, WritesHyperparametersForTensorBoard) {
  const std::string arguments =
      "--rule linear,root --seed 1,2 --model softmax --epochs 1 --tune never --out t --tensorboard";
  ASSERT_EQ(compare(arguments).code, 0);
  // Again, which has nothing to do.
  ASSERT_EQ(compare(arguments).code, 0);
  const auto columns = test::read_folder(file("t/runs"));
  ASSERT_EQ(columns.size(), 2U);
  ASSERT_TRUE(columns[1].hparams);
  EXPECT_THAT(
      columns[1].hparams->columns,
      ElementsAre(testing::Pair("trace", 1), testing::Pair("rule", 1), testing::Pair("seed", 3)));
  EXPECT_THAT(columns[1].hparams->metrics, ElementsAre("test/accuracy", "test/loss"));
  const auto runs = answer("t").at("runs");
  for (const auto& run : runs) {
    const auto events = test::read_folder(file("t/runs/" + run.at("name").get<std::string>()));
    ASSERT_TRUE(events.at(1).hparams) << run;
    const auto& values = events[1].hparams->values;
    EXPECT_EQ(std::get<std::string>(values.at("rule")), run.at("rule").get<std::string>());
    EXPECT_EQ(std::get<double>(values.at("seed")), run.at("seed"));
    const auto curves = test::curves_of(events);
    EXPECT_FLOAT_EQ(curves.at("test/accuracy").back().second, run.at("final").get<float>()) << run;
  }
}

// The options are those of the run, and so are the samples' order and all bits.
TEST_F(CompareCommand, TrainsForksAsTrainDoes) {
  succeeds("train --model softmax --trace 256 --lr 0.05 --epochs 2 --quiet --out run");
  succeeds("train --from run@50 --rule root --quiet --out fork");
  ASSERT_EQ(
      compare("--from run@50,run@20 --rule linear,root --tune never --quiet --out forks").code, 0);
  EXPECT_EQ(hash("forks/runs/256_root_run-50_seed-42"), hash("fork"));
  EXPECT_EQ(hash("forks/runs/256_linear_run-20_seed-42"), hash("run"));
  // Again, which has nothing to do.
  EXPECT_EQ(compare("--resume forks --quiet").code, 0);
}

// All of the answer that does not depend on the machine.
constexpr std::array<const char*, 3> kAnswers{"answer.md", "answer.csv", "answer.json"};

// The first 60 of 71 steps of two runs are those of a third one.
TEST_F(CompareCommand, TrainsEqualStepsOnce) {
  std::string trace = "step,batchsize\n";
  for (int step = 0; step < 100; ++step) {
    trace += fmt::format("{},{}\n", step, step < 60 ? 128 : 384);
  }
  folder_.write("t.csv", trace);
  const std::string design =
      "--model softmax --trace t.csv --rule linear,root,constant --baseline trace=t.csv,rule="
      "constant --epochs 1 --tune never --quiet --out ";
  ASSERT_EQ(compare(design + "shared --jobs 3").code, 0);
  ASSERT_EQ(compare(design + "alone --checkpoint-every 1000steps").code, 0);
  for (const char* name : kAnswers) {
    EXPECT_EQ(content(std::string("shared/") + name), content(std::string("alone/") + name));
  }
  EXPECT_THAT(content("shared/runs/t_root_seed-42/config.toml"),
              AllOf(HasSubstr("# A fork: "), HasSubstr("t_linear_seed-42 after step 60")));
  EXPECT_THAT(content("alone/runs/t_root_seed-42/config.toml"), Not(HasSubstr("# A fork")));
  for (const char* rule : {"linear", "root", "constant"}) {
    const std::string run = fmt::format("runs/t_{}_seed-42", rule);
    EXPECT_EQ(hash("shared/" + run), hash("alone/" + run)) << rule;
  }
}

TEST_F(CompareCommand, AnswersAfterKillsAsItDoesWithout) {
  const int epochs = epochs_to_be_caught([this](int tried) {
    fs::remove_all(file("killed"));
    for (const std::ptrdiff_t ended : {1, 3}) {
      const ProgramResult result =
          compare(design_of("killed", tried), [&](pid_t process, const auto&) {
            if (reaches("killed", ended)) kill(process, SIGKILL);
          });
      if (result.signal != SIGKILL) return false;
    }
    return true;
  });
  ASSERT_EQ(compare(design_of("whole", epochs)).code, 0);
  // What had ended is not done again.
  std::vector<std::pair<fs::path, fs::file_time_type>> before;
  for (const auto& entry : fs::directory_iterator(file("killed/runs"))) {
    const fs::path summary = entry.path() / "summary.json";
    if (fs::exists(summary)) before.emplace_back(summary, fs::last_write_time(summary));
  }
  EXPECT_GE(before.size(), 3U);
  const ProgramResult result = compare("--resume killed");
  EXPECT_EQ(result.code, 0) << result.err;
  for (const auto& [summary, time] : before) EXPECT_EQ(fs::last_write_time(summary), time);
  for (const char* name : kAnswers) {
    EXPECT_EQ(content(std::string("killed/") + name), content(std::string("whole/") + name))
        << name;
  }
}

TEST_F(CompareCommand, StopsItsRunsOnASignal) {
  const auto folder_of = [](int signal) { return fmt::format("stopped-{}", signal); };
  std::map<int, ProgramResult> results;
  epochs_to_be_caught([&](int epochs) {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
      const std::string out = folder_of(signal);
      fs::remove_all(file(out));
      results[signal] = compare(design_of(out, epochs), [&](pid_t process, const auto&) {
        if (reaches(out, 0)) kill(process, signal);
      });
      if (!look(out).checkpoint) return false;
    }
    return true;
  });
  for (const auto& [signal, result] : results) {
    const std::string out = folder_of(signal);
    EXPECT_EQ(result.code, 128 + signal);
    EXPECT_THAT(result.err, AllOf(HasSubstr("the runs finish their steps and write checkpoints"),
                                  HasSubstr("to continue: rubato compare --resume ")));
    EXPECT_FALSE(fs::exists(file(out) / "answer.md"));
    const ProgramResult quiet = compare("--resume " + out + " --quiet");
    EXPECT_EQ(quiet.code, 0);
    EXPECT_EQ(quiet.err, "");
    EXPECT_THAT(quiet.out, AllOf(HasSubstr("baseline"), Not(HasSubstr("answer.md")),
                                 Not(HasSubstr("are complete"))))
        << "the answer, and nothing else";
  }
  EXPECT_EQ(content("stopped-2/answer.json"), content("stopped-15/answer.json"));
}

// The children of a process.
std::vector<pid_t> children_of(pid_t process) {
  std::ifstream list(fmt::format("/proc/{}/task/{}/children", process, process));
  std::vector<pid_t> children;
  for (pid_t child = 0; list >> child;) children.push_back(child);
  return children;
}

// The first child of a process that executes this command of rubato; 0 if there is none.
pid_t child_of(pid_t process, const std::string& command) {
  for (const pid_t child : children_of(process)) {
    std::ifstream words(fmt::format("/proc/{}/cmdline", child));
    std::string word;
    std::getline(words, word, '\0');
    std::getline(words, word, '\0');
    if (word == command) return child;
  }
  return 0;
}

TEST_F(CompareCommand, AnswersWithoutARunThatWasKilled) {
  ProgramResult result;
  epochs_to_be_caught([&](int epochs) {
    fs::remove_all(file("e"));
    result = compare(design_of("e", epochs), [&](pid_t process, const auto&) {
      if (!reaches("e", 0)) return;
      if (const pid_t child = child_of(process, "train"); child != 0) kill(child, SIGKILL);
    });
    return result.code != 0;
  });
  EXPECT_EQ(result.code, 27);
  EXPECT_THAT(result.out, HasSubstr("killed by signal 9 (Killed); it continues the next time"));
  EXPECT_THAT(result.err, HasSubstr("1 run did not reach its end; to continue: rubato compare"));
  EXPECT_THAT(content("e/answer.md"), HasSubstr("1 of 2 missing"));
  EXPECT_EQ(compare("--resume e --quiet").code, 0);
  EXPECT_THAT(content("e/answer.md"), Not(HasSubstr("missing")));
}

// Runs do not need the process that has forked them, and it is replaced if others need it.
TEST_F(CompareCommand, ContinuesWithoutTheServerOfItsRuns) {
  ProgramResult result;
  const int epochs = epochs_to_be_caught([&](int tried) {
    fs::remove_all(file("e"));
    pid_t server = 0;
    result = compare(design_of("e", tried), [&](pid_t process, const auto&) {
      if (!reaches("e", 0)) return;
      server = child_of(process, "serve-runs");
      if (server == 0 || kill(server, SIGKILL) != 0) return;
      // It is no zombie once the next run begins.
      const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
      while (kill(server, 0) == 0 && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      EXPECT_NE(kill(server, 0), 0);
    });
    return server != 0;
  });
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out,
              HasSubstr("the process that loads data for several runs: killed by signal 9"));
  ASSERT_EQ(compare(design_of("whole", epochs)).code, 0);
  for (const char* name : kAnswers) {
    EXPECT_EQ(content(std::string("e/") + name), content(std::string("whole/") + name)) << name;
  }
}

// With a small stack, rubato works on a thread of its own.
TEST_F(CompareCommand, AsksNoServerAgainThatHasThreads) {
  const ProgramResult result = test::shell(
      "ulimit -s 1024; exec \"$0\" compare --model softmax --epochs 1 --tune never --rule linear "
      "--seed 1..3 --jobs 1 --out e",
      folder_.path());
  EXPECT_EQ(result.code, 0) << result.err;
  const std::string said = "the process that loads data for several runs: it has several threads\n";
  EXPECT_THAT(result.out, HasSubstr(said));
  EXPECT_EQ(result.out.find(said), result.out.rfind(said));
}

// The process that forks them is told to end as soon as it has forked the last one.
TEST_F(CompareCommand, BeginsTheLastRunThatIsForked) {
  for (int i = 0; i < 10; ++i) {
    fs::remove_all(file("e"));
    const ProgramResult result = compare(
        "--model quadratic:dim=5 --epochs 1 --tune never --rule linear --seed 1..2 --out e "
        "--quiet");
    ASSERT_EQ(result.code, 0) << result.err;
  }
}

// A run that is forked leaves what `rubato train` leaves.
TEST_F(CompareCommand, ForksRunsThatAreThoseOfTrain) {
  ASSERT_EQ(
      compare(
          "--model softmax --epochs 1 --tune never --quiet --rule linear,root --seed 1..2 --out e")
          .code,
      0);
  for (const auto& entry : fs::directory_iterator(file("e/runs"))) {
    if (!entry.is_directory()) continue;
    const std::string run = entry.path().filename();
    SCOPED_TRACE(run);
    succeeds({"train", "--config", (file("e/runs") / (run + ".toml")).string(), "--out",
              "alone/" + run, "--threads", "1", "--quiet"});
    EXPECT_EQ(hash("e/runs/" + run), hash("alone/" + run));
    EXPECT_EQ(summary("e/runs/" + run)["digest"], summary("alone/" + run)["digest"]);
    fs::remove(entry.path() / "machine.txt");
    EXPECT_EQ(files_in(entry.path()), files_in(file("alone/" + run)));
  }
}

TEST_F(CompareCommand, NoticesDataThatChangeMeanwhile) {
  const std::string rows = "a,b,label\n1,2,x\n3,4,y\n5,7,x\n2,2,y\n1,3,x\n3,3,y\n";
  folder_.write("table.csv", rows);
  folder_.write("new.csv", rows + rows.substr(rows.find('1')));
  // A file that has just been written is not kept for several runs.
  std::this_thread::sleep_for(std::chrono::milliseconds(2100));
  constexpr std::ptrdiff_t kBefore = 3;
  const ProgramResult result = compare(
      "--data csv:table.csv,label=label --validation 0.5 --model softmax --epochs 40 --trace 2 "
      "--ref-batch 2 --minibatch 1 --tune never --rule linear --seed 1..30 --jobs 1 --quiet "
      "--out e",
      [this](pid_t, const auto&) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
        while (look("e").ended < kBefore && std::chrono::steady_clock::now() < end) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        fs::rename(file("new.csv"), file("table.csv"));
      });
  ASSERT_EQ(result.code, 0) << result.err;
  std::map<int, int> runs;
  for (const auto& entry : fs::directory_iterator(file("e/runs"))) {
    if (!entry.is_directory()) continue;
    ++runs[summary("e/runs/" + entry.path().filename().string())["samples"].get<int>()];
  }
  ASSERT_EQ(runs.size(), 2U) << "those of the old table, and those of the new one";
  EXPECT_GE(runs.begin()->second, kBefore);
  // Three samples are one step of two, and six are three.
  EXPECT_EQ(runs.rbegin()->first, 3 * runs.begin()->first);
}

const std::string kShort = "--model softmax --epochs 1 --tune never --quiet ";

TEST_F(CompareCommand, TakesMoreValuesLater) {
  const std::string first = kShort + "--rule linear --seed 1,2 --out e";
  ASSERT_EQ(compare(first).code, 0);
  const auto time = fs::last_write_time(file("e/runs/elastic_linear_seed-1/summary.json"));
  const ProgramResult more = compare("--resume e --seed 1..3 --rule linear --rule root");
  ASSERT_EQ(more.code, 0) << more.err;
  EXPECT_THAT(more.out, HasSubstr("runs: 4 of 9 are complete"));
  EXPECT_EQ(answer("e")["runs"].size(), 9U);
  EXPECT_EQ(fs::last_write_time(file("e/runs/elastic_linear_seed-1/summary.json")), time);
  // And nothing else.
  const ProgramResult other = compare("--resume e --lr 0.5");
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("--lr was 0.01, is 0.5"));
  // What is refused has not become the design.
  EXPECT_EQ(compare("--resume e --quiet").code, 0);
}

TEST_F(CompareCommand, IsReproducedByItsDesign) {
  folder_.write("t.csv", "step,batchsize\n0,128\n1,64\n");
  const std::string first =
      "--model softmax --epochs 1 --quiet --trace t.csv,256 --on-trace-end cycle --seed 1,2 "
      "--tune lr=0.01,0.05,only --budget samples=5000 --out e";
  ASSERT_EQ(compare(first).code, 0);
  fs::remove(file("t.csv"));
  ASSERT_EQ(compare("--config e/design.toml --out again --quiet").code, 0);
  for (const char* name : kAnswers) {
    EXPECT_EQ(content(std::string("e/") + name), content(std::string("again/") + name)) << name;
  }
  EXPECT_EQ(answer("e")["cells"][0]["trace"], "t");
  EXPECT_EQ(answer("e")["tuning"][0]["values"].size(), 2U);
}

// Metrics that were emptied would make "never learned" of a good run; half a summary would end all.
TEST_F(CompareCommand, DoesRunsAgainThatSomebodyHasChanged) {
  const std::string arguments = kShort + "--rule linear,root --out e";
  const ProgramResult first = compare(arguments);
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.err, "");
  EXPECT_THAT(first.out, HasSubstr("Best: linear."));
  std::map<std::string, std::string> answers;
  for (const char* name : kAnswers) answers[name] = content(std::string("e/") + name);
  folder_.write("e/runs/elastic_linear_seed-42/metrics.jsonl", "");
  folder_.write("e/runs/elastic_root_seed-42/summary.json", "{");
  const ProgramResult again = compare(arguments);
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.err, AllOf(HasSubstr("metrics.jsonl: has changed since the run ended"),
                               HasSubstr("summary.json: not a summary of a run"),
                               HasSubstr("it is run again; its old files are in ")));
  for (const char* name : kAnswers) EXPECT_EQ(content(std::string("e/") + name), answers[name]);
  EXPECT_EQ(content("e/damaged/elastic_root_seed-42/summary.json"), "{");
  EXPECT_EQ(compare(arguments).err, "");
  // Whoever watches it sees it there.
  folder_.write("e/runs/elastic_root_seed-42/summary.json", "{");
  EXPECT_THAT(compare("--resume e").out, HasSubstr("it is run again; its old files are"));
}

TEST_F(CompareCommand, FindsMistakesBeforeAnythingRuns) {
  for (const auto& [arguments, message] : std::vector<std::pair<std::string, std::string>>{
           {"--rule linear,rot", "--rule: unknown rule 'rot'"},
           {"--rule linear,linear", "--rule: linear is listed twice"},
           {"--trace none.csv", "no such file as 'none.csv'"},
           {"--model softmax,quadratic", "and quadratic has none"},
           {"--budget hours=1 --budget epochs=1 --epochs 2", "--budget epochs=1: --epochs says 2"},
           {"--budget money=1", "--price"},
           // Nothing says how long a step takes, and so nothing would say when the runs end.
           {"--budget hours=1",
            "--budget hours=1: the time of a step is not known; accepted: with --cluster "
            "substep=SECONDS"},
           {"--lr 0.1 --tune-seeds 3", "--tune-seeds: nothing is tuned; accepted: without --lr"},
           {"--lr 0.1 --tune lr=0.1,0.2", "--lr: --tune lr=0.1,0.2 finds it; accepted: one of"},
           {"--lr 0.1 --tune lr", "--lr: --tune lr finds it; accepted: one of them"},
           {"--margin best", "--margin: 'best' is not a margin; accepted: baseline, or a number"},
           {"--rul linear", "did you mean '--rule'?"},
           {"--resume none", "none/design.toml"}}) {
    EXPECT_THAT(
        refusal("compare " + arguments + (arguments.starts_with("--resume") ? "" : " --out e")),
        HasSubstr(message));
    EXPECT_FALSE(fs::exists(file("e")));
  }
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

const std::string kTuned =
    "--model softmax --epochs 1 --rule linear,root --seed 1,2 --tune lr=0.01,0.05,only ";

// Any engine can do it: each run is a command of its own, and so is the answer.
TEST_F(CompareCommand, DoesRunsOneByOne) {
  ASSERT_EQ(compare(kTuned + "--quiet --out whole").code, 0);
  EXPECT_EQ(printed("compare " + kTuned + "--out e --only-plan"),
            fmt::format("10 runs are listed in {}\n", file("e/plan.txt").string()));
  const std::vector<std::string> names = lines_of(content("e/plan.txt"));
  ASSERT_EQ(names.size(), 10U);
  EXPECT_EQ(names[0], "tune/lr-0.01_seed-1000001");
  EXPECT_EQ(names[4], "elastic_linear_seed-1");

  // Which rate it has is not known yet.
  succeeds("compare --resume e --run 1 --quiet");
  const ProgramResult early = compare("--resume e --run elastic_linear_seed-1");
  EXPECT_EQ(early.code, 27);
  EXPECT_EQ(early.err,
            "rubato compare: --run: elastic_linear_seed-1 needs runs that have not ended: "
            "tune/lr-0.01_seed-1000002, tune/lr-0.05_seed-1000001, tune/lr-0.05_seed-1000002\n");
  for (std::size_t i = 1; i < names.size(); ++i) {
    const std::string run = i % 2 == 0 ? names[i] : fmt::to_string(i + 1);
    EXPECT_THAT(printed("compare --resume e --run " + run),
                HasSubstr("1/1  " + fs::path(names[i]).filename().string() + "  "));
    EXPECT_FALSE(fs::exists(file("e/answer.json")));
  }
  EXPECT_THAT(printed("compare --resume e --run 7"), HasSubstr("runs: 1 of 1 are complete"));
  succeeds("compare --resume e --quiet");
  for (const char* name : kAnswers) {
    EXPECT_EQ(content(std::string("e/") + name), content(std::string("whole/") + name)) << name;
  }
  EXPECT_FALSE(fs::exists(file("e/work")));
}

TEST_F(CompareCommand, FindsTheRateUnlessItIsGiven) {
  const std::string design = "--model softmax --epochs 1 --rule linear --seed 1,2 ";
  const ProgramResult found = compare(design + "--out e");
  ASSERT_EQ(found.code, 0) << found.err;
  EXPECT_THAT(found.out,
              AllOf(StartsWith("no --lr: finding the rate that is best for the baseline takes at "
                               "least 10 runs of 93 steps; --lr X or --tune never skips it\n"
                               "tuning lr: 0 of 6 are complete\n"),
                    HasSubstr(" left\n"), HasSubstr(", tuned for the baseline and used by all\n"),
                    Not(HasSubstr("*"))));
  const nlohmann::json answer = this->answer("e");
  EXPECT_TRUE(answer.at("untuned").is_null());
  const auto& tuning = answer.at("tuning").at(0);
  EXPECT_GE(tuning.at("values").size(), 5U);
  EXPECT_FALSE(tuning.at("at_end").get<bool>());
  EXPECT_THAT(content("e/runs/elastic_linear_seed-1.toml"),
              HasSubstr("\nlr = " + tuning.at("taken").get<std::string>() + "\n"));
  // It is of the experiment, and whoever gives another one hears of it.
  EXPECT_THAT(compare("--resume e").out, StartsWith("runs: 4 of 4 are complete\n"));
  EXPECT_THAT(refusal("compare --resume e --lr 7"), HasSubstr(", is 7\n"));

  const ProgramResult given = compare(design + "--lr 0.05 --out given --quiet");
  ASSERT_EQ(given.code, 0) << given.err;
  EXPECT_THAT(
      given.out,
      AllOf(HasSubstr("\nlr 0.05 as given: not tuned\n"), ContainsRegex(" (better|tied|worse)[*]"),
            HasSubstr("\n* lr 0.05 as given: not tuned, so that another rate may "
                      "change the verdict.\n")));
  EXPECT_EQ(this->answer("given").at("untuned"), "lr 0.05 as given: not tuned");
  EXPECT_THAT(content("given/answer.csv"), Not(HasSubstr("*")));
}

// The combinations have different batches, so that their runs have no common number of steps.
TEST_F(CompareCommand, FindsTheRateOfEachCombination) {
  EXPECT_THAT(
      printed("compare --model quadratic:dim=5 --epochs 1 --rule linear --trace 256 --seed 1 "
              "--tune-for each --tune-seeds 1 --out e"),
      StartsWith("no --lr: finding the rate that is best for each combination takes at least "
                 "10 runs; --lr X or --tune never skips it\n"));
}

// The workflow of clusters: what tunes first, and then the others, each by itself.
TEST_F(CompareCommand, TunesAlone) {
  const std::string design = "--model softmax --epochs 1 --rule linear --tune-seeds 1 ";
  succeeds("compare " + design + "--out e --only-plan --quiet");
  succeeds("compare --resume e --run tune --quiet");
  EXPECT_FALSE(fs::exists(file("e/answer.md")));
  for (const std::string& run : lines_of(content("e/plan.txt"))) {
    if (run.starts_with("tune/")) {
      EXPECT_TRUE(fs::exists(file("e/" + run + "/summary.json"))) << run;
    } else {
      succeeds("compare --resume e --quiet --run " + run);
    }
  }
  EXPECT_THAT(printed("compare --resume e"), StartsWith("runs: 2 of 2 are complete\n"));
  ASSERT_EQ(compare(design + "--quiet --out whole").code, 0);
  for (const char* name : kAnswers) {
    EXPECT_EQ(content(std::string("e/") + name), content(std::string("whole/") + name)) << name;
  }
}

TEST_F(CompareCommand, TakesOverEqualRunsOfOtherExperiments) {
  succeeds("compare " + kShort + "--rule linear --seed 1,2 --out lab/first");
  const std::string larger =
      "--model softmax --epochs 1 --tune never --rule linear,root --seed 1,2 ";
  ASSERT_EQ(compare(larger + "--quiet --out whole").code, 0);
  const auto take_over = [&](const std::string& taken, const std::string& out) {
    SCOPED_TRACE(out);
    const ProgramResult result = compare(larger + "--reuse lab --out " + out);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.out,
                HasSubstr(taken + " of 6 runs were taken over from other experiments\n"));
    for (const char* name : kAnswers) {
      EXPECT_EQ(content(out + "/" + name), content(std::string("whole/") + name)) << name;
    }
  };
  take_over("4", "second");
  // It has the times of the first, too.
  const std::string metrics = "/runs/elastic_linear_seed-1/metrics.jsonl";
  EXPECT_EQ(content("second" + metrics), content("lab/first" + metrics));

  // One is damaged, and another was computed by another version.
  folder_.write("lab/first" + metrics, content("lab/first" + metrics) + "\n");
  std::string summary = content("lab/first/runs/baseline_seed-2/summary.json");
  summary.replace(summary.find("\"rubato\": \""), 11, "\"rubato\": \"9");
  folder_.write("lab/first/runs/baseline_seed-2/summary.json", summary);
  take_over("2", "third");
  EXPECT_THAT(refusal("compare " + larger + "--reuse nowhere"),
              HasSubstr("'nowhere' is not a folder; accepted: one with experiments"));
}

TEST_F(CompareCommand, TakesOverNoRunsOnOtherData) {
  const std::string rows = "a,b,label\n1,2,x\n3,4,y\n5,7,x\n2,2,y\n1,3,x\n3,3,y\n";
  const std::string design =
      "--data csv:table.csv,label=label --validation 0.5 --model softmax --epochs 2 --trace 2 "
      "--ref-batch 2 --minibatch 1 --tune never --rule linear --reuse lab --out lab/";
  fs::create_directory(file("lab"));
  folder_.write("table.csv", rows);
  EXPECT_EQ(compare(design + "first").code, 0);
  EXPECT_THAT(compare(design + "second").out, HasSubstr("2 of 2 runs were taken over"));
  folder_.write("table.csv", rows + rows.substr(rows.find('1')));
  const ProgramResult other = compare(design + "third");
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_THAT(other.out, Not(HasSubstr("taken over")));
}

TEST_F(CompareCommand, SaysHowManyRunsShareTheCpus) {
  const std::string design =
      "--model softmax --epochs 1 --tune never --rule linear --threads 1 --out ";
  EXPECT_THAT(compare(design + "two --jobs 2").out,
              HasSubstr("runs: 0 of 2 are complete\n2 runs at a time with 1 thread each\n"));
  EXPECT_THAT(compare("--resume two").out, Not(HasSubstr("at a time")));
  EXPECT_THAT(
      compare("--model softmax --epochs 1 --tune never --rule linear --out all --jobs 1").out,
      ContainsRegex("\n1 run at a time with [0-9]+ threads? on [0-9]+ CPUs?\n"));
  // Nobody knows what else is trained beside a single run.
  succeeds("compare " + design + "one --only-plan");
  EXPECT_THAT(printed("compare --resume one --run 1"),
              HasSubstr("\n1 run at a time with 1 thread\n"));
}

// A machine that computes something else is found by whoever does the run again.
TEST_F(CompareCommand, FindsResultsThatDiffer) {
  succeeds("compare " + kShort + "--rule linear --seed 1,2 --out e");
  EXPECT_THAT(
      printed("compare --resume e --check 30%"),
      AllOf(HasSubstr("checks: 0 of 2 are complete"), HasSubstr("  has the same result as on ")));
  EXPECT_THAT(printed("compare --resume e --run 2 --check 100%"),
              HasSubstr("elastic_linear_seed-2  has the same result as on "));

  const std::string summary = "e/runs/elastic_linear_seed-2/summary.json";
  std::string bad = content(summary);
  const std::string weights = hash("e/runs/elastic_linear_seed-2");
  bad.replace(bad.find(weights), 16, "0123456789abcdef");
  folder_.write(summary, bad);
  const ProgramResult checked = compare("--resume e --run 2 --check 100% --quiet");
  EXPECT_EQ(checked.code, 33);
  EXPECT_THAT(checked.err, AllOf(HasSubstr("elastic_linear_seed-2 has two results: "),
                                 HasSubstr("/e/runs/elastic_linear_seed-2 of "),
                                 HasSubstr("(weights 0123456789abcdef), which is kept, and "),
                                 HasSubstr("/e/different/runs/elastic_linear_seed-2@"),
                                 HasSubstr(fmt::format("(weights {})", weights.substr(0, 16)))));
  EXPECT_EQ(content(summary), bad);
  // It is said until one of them is gone.
  const ProgramResult again = compare("--resume e --quiet");
  EXPECT_EQ(again.code, 33);
  EXPECT_EQ(again.err, checked.err);
  EXPECT_EQ(compare("--resume e --run 1 --quiet").code, 0) << "it is another run";
  fs::remove_all(file("e/runs/elastic_linear_seed-2"));
  fs::rename(fs::directory_iterator(file("e/different/runs"))->path(),
             file("e/runs/elastic_linear_seed-2"));
  EXPECT_EQ(compare("--resume e --quiet").code, 0);
  EXPECT_EQ(hash("e/runs/elastic_linear_seed-2"), weights);
}

// Two at once share the runs.
TEST_F(CompareCommand, SharesItsFolder) {
  const std::string design = design_of("e", 5);
  const ProgramResult result = compare(design, [&](pid_t, const auto&) {
    static_cast<void>(reaches("e", 0));
    EXPECT_EQ(compare("--resume e --jobs 1").code, 0);
  });
  EXPECT_EQ(result.code, 0) << result.err;
  ASSERT_EQ(compare(design_of("whole", 5)).code, 0);
  for (const char* name : kAnswers) {
    EXPECT_EQ(content(std::string("e/") + name), content(std::string("whole/") + name)) << name;
  }
}

TEST_F(CompareCommand, RefusesRunsThatAreNotThere) {
  succeeds("compare " + kShort + "--rule linear --out e --only-plan");
  for (const auto& [arguments, message] : std::vector<std::pair<std::string, std::string>>{
           {"--resume e --run 3", "--run: no run 3; accepted: 1 to 2, or a name in plan.txt"},
           {"--resume e --run linear", "--run: no run 'linear'; accepted: 1 to 2, or"},
           {"--resume e --run 1 --seed 1..3",
            "--run: --seed would change the experiment; accepted: first --only-plan with --seed"},
           {"--resume e --run 1 --margin 1", "--run: --margin would change the experiment"},
           {"--out f --run 1", "--run: there is no experiment yet; accepted: with --resume"},
           {"--resume e --only-plan --run 1", "--run: nothing is trained; accepted: without"},
           {"--resume e --only-plan --check 5%", "--check: nothing is trained; accepted: without"},
           {"--resume e --check 0.02", "--check: '0.02' is not a share; accepted: a percentage"},
           {"--resume e --check 200%", "accepted: a number above 0, up to 100"}}) {
    EXPECT_THAT(refusal("compare " + arguments), HasSubstr(message));
  }
}

}  // namespace
}  // namespace rubato
