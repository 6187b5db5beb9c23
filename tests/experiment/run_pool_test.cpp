#include "runs/experiment/conduct/run_pool.hpp"

#include <algorithm>
#include <csignal>
#include <map>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using testing::Pair;

// What was told, by the name of the task.
class Notes final : public PoolObserver {
 public:
  void on_shares(const CpuShares& shares) override { at_once.push_back(shares.at_once); }
  void on_start(const RunTask& task) override {
    started.push_back(task.name);
    ++running;
    most = std::max(most, running);
  }
  void on_end(const RunTask& task, TaskEnd end, double /*seconds*/,
              const std::string& why) override {
    --running;
    ended.emplace(task.name, end == TaskEnd::ended ? "ended" : why);
  }
  void on_second(const RunTask& task, const Publication& publication) override {
    seconds.emplace(task.name, publication.kind);
  }
  void on_reused(const RunTask& task) override { reused.push_back(task.name); }
  void on_server_failed(const std::string& why) override { failures.push_back(why); }
  void on_tick() override {}

  std::vector<std::string> failures;
  std::vector<std::int64_t> at_once;
  std::vector<std::string> reused;
  std::map<std::string, Publication::Kind> seconds;
  std::vector<std::string> started;
  std::map<std::string, std::string> ended;
  int running = 0;
  int most = 0;
};

// Runs that a script pretends to do: it gets the arguments of `rubato`, with the folder in $out.
class RunPools : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_.path() / "runs");
    for (const char* name : {"a", "b", "c"}) {
      tasks_.push_back({.name = name, .files = files_of(folder_.path(), name, false)});
    }
  }
  void run(const std::string& script, std::int64_t jobs = 1, std::int64_t cpus = 0) {
    work(program_of(script), jobs, cpus);
  }
  [[nodiscard]] std::filesystem::path program_of(const std::string& script) const {
    auto program = folder_.write("program",
                                 "#!/bin/bash\n"
                                 "echo \"$*\" >>" +
                                     (folder_.path() / "calls").string() +
                                     "\n"
                                     "case $2 in --resume) out=$3;; *) out=$5;; esac\n"
                                     "name=${out##*/}\n"
                                     "finish() { mkdir -p $out; echo '{}' >$out/summary.json; }\n" +
                                     script);
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    return program;
  }
  void work(const std::filesystem::path& program, std::int64_t jobs = 1, std::int64_t cpus = 0) {
    const Worker worker(folder_.path());
    execute(tasks_,
            {.program = program, .jobs = jobs, .cpus = cpus, .stopping = [&] { return stop_(); }},
            worker, notes_);
  }
  void forget() {
    notes_.started.clear();
    notes_.ended.clear();
  }
  [[nodiscard]] std::string file(const std::string& name) const {
    return test::read_file(folder_.path() / name);
  }

  const test::TempFolder folder_;
  std::vector<RunTask> tasks_;
  Notes notes_;
  std::function<bool()> stop_ = [] { return false; };
};

// Neither has written anything when the other one begins.
TEST_F(RunPools, DivideRunsWithOthersThatBeginAtTheSameTime) {
  const auto program = program_of("sleep 0.2\nfinish");
  const pid_t other = fork();
  work(program);
  if (other == 0) _exit(0);
  EXPECT_EQ(await_child(other), 0);
  const std::string calls = file("calls");
  EXPECT_EQ(std::ranges::count(calls, '\n'), 3) << calls;
  EXPECT_THAT(notes_.ended,
              UnorderedElementsAre(Pair("a", "ended"), Pair("b", "ended"), Pair("c", "ended")));
}

TEST_F(RunPools, BringAllToTheirEnd) {
  run("finish");
  EXPECT_THAT(notes_.started, ElementsAre("a", "b", "c"));
  EXPECT_THAT(notes_.ended,
              UnorderedElementsAre(Pair("a", "ended"), Pair("b", "ended"), Pair("c", "ended")));
  EXPECT_EQ(notes_.most, 1);
  const std::string folder = folder_.path().string();
  EXPECT_THAT(file("calls"), ContainsRegex("train --config " + folder + "/runs/a.toml --out " +
                                           folder + "/workers/[^/]*/runs/a --threads 1 --quiet\n"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "workers"));
  EXPECT_FALSE(std::filesystem::exists(tasks_[0].files.log));
  // Again there is nothing to do.
  run("exit 9");
  EXPECT_EQ(notes_.started.size(), 3U);
}

TEST_F(RunPools, RunSeveralAtATime) {
  // None ends before two have begun.
  run("touch " + (folder_.path() / "begun-$name").string() +
          "; for ((i = 0; i < 3000; ++i)); do ls " + (folder_.path() / "begun-*").string() +
          " | grep --quiet --invert-match \"begun-$name\" && break; sleep 0.01; done; finish",
      2);
  EXPECT_EQ(notes_.most, 2);
  EXPECT_EQ(notes_.ended.size(), 3U);
}

// Two of three runs at a time leave one, which has all CPUs.
TEST_F(RunPools, GiveTheLastRunsTheCpusThatWouldBeIdle) {
  tasks_[1].is_exact = false;
  run("finish", 2, 5);
  EXPECT_THAT(file("calls"), AllOf(HasSubstr("/a --threads 2 "), HasSubstr("/b --threads 1 "),
                                   HasSubstr("/c --threads 5 ")));
  EXPECT_THAT(notes_.at_once, ElementsAre(2));
  // There is nothing to divide when all have ended.
  run("exit 9", 2, 5);
  EXPECT_EQ(notes_.at_once.size(), 1U);
}

TEST(CpuShares, AreThreadsOnlyForCpusThatWouldBeIdle) {
  const auto shares = [](std::int64_t runs, std::int64_t jobs, std::int64_t cpus) {
    const CpuShares of =
        shares_of(runs, {.program = {}, .jobs = jobs, .cpus = cpus, .stopping = {}}, 3);
    return std::vector{of.at_once, of.threads, of.last, of.last_threads};
  };
  EXPECT_THAT(shares(15, 2, 2), ElementsAre(2, 1, 1, 2));
  EXPECT_THAT(shares(16, 2, 2), ElementsAre(2, 1, 0, 1));
  EXPECT_THAT(shares(15, 64, 64), ElementsAre(15, 4, 0, 4));
  EXPECT_THAT(shares(80, 64, 64), ElementsAre(64, 1, 16, 4));
  EXPECT_THAT(shares(80, 4, 64), ElementsAre(4, 16, 0, 16));
  EXPECT_THAT(shares(5, 4, 2), ElementsAre(4, 1, 1, 2)) << "more runs than CPUs are the user's";
  EXPECT_THAT(shares(5, 2, 0), ElementsAre(2, 3, 0, 3)) << "each has its own number of threads";
}

// c goes on from a's steps, as soon as they are there, and b from steps that never come.
TEST_F(RunPools, WaitForStepsThatAnotherTaskTrains) {
  const auto shared = folder_.path() / "shared/a";
  tasks_[1].prefix = {
      .run = tasks_[0].files, .steps = 9, .shared = shared, .config = "b.fork.toml"};
  tasks_[2].prefix = {
      .run = tasks_[0].files, .steps = 5, .shared = shared, .config = "c.fork.toml"};
  // The folder of c is gone as soon as it has ended; its call stays.
  run("case $name in a) mkdir -p $out/checkpoints; touch $out/checkpoints/step-{3,5}.safetensors;\n"
      "touch $out/config.toml $out/metrics.jsonl $out/weights.pt\n"
      "for ((i = 0; i < 3000; ++i)); do grep --quiet c.fork.toml " +
          (folder_.path() / "calls").string() +
          " && break; sleep 0.01; done; ((i < 3000)) || exit 9;; esac\n"
          "finish",
      3);
  EXPECT_THAT(notes_.started, ElementsAre("a", "c", "b"));
  EXPECT_THAT(notes_.ended,
              UnorderedElementsAre(Pair("a", "ended"), Pair("b", "ended"), Pair("c", "ended")));
  EXPECT_THAT(file("calls"), AllOf(HasSubstr("--config c.fork.toml"), HasSubstr("/b.toml"),
                                   Not(HasSubstr("b.fork.toml"))));
  // What a fork needs, and nothing that the run may have left since.
  for (const char* name : {"config.toml", "metrics.jsonl", "checkpoints/step-5.safetensors"}) {
    EXPECT_TRUE(std::filesystem::exists(shared / name)) << name;
  }
  EXPECT_FALSE(std::filesystem::exists(shared / "weights.pt"));
  EXPECT_FALSE(std::filesystem::exists(shared / "checkpoints/step-3.safetensors"));
}

// a has the result of the equal run, b other versions, and c other data.
TEST_F(RunPools, TakeOverEqualRunsThatHaveTheSameOrigin) {
  const char* const summary = R"({"kernels":{"cpu":"AVX2"},"versions":{"rubato":"1"}})";
  for (const char* name : {"config.toml", "metrics.jsonl", "checkpoints/step-3.safetensors"}) {
    folder_.write(std::string("equal/") + name, "");
  }
  const auto equal = folder_.write("equal/summary.json", summary);
  for (RunTask& task : tasks_) task.equal = equal.parent_path();
  run("if [[ $2 == --resume ]]; then [[ -e $out/checkpoints/step-3.safetensors ]] || exit 9\n"
      "case $name in a) cp " +
          equal.string() +
          " $out;; b) finish;; c) echo 'other data' >&2; exit 2;; esac\n"
          "else finish; fi",
      1);
  EXPECT_THAT(notes_.reused, ElementsAre("a"));
  EXPECT_THAT(notes_.started, ElementsAre("a", "b", "c"));
  EXPECT_THAT(notes_.ended,
              UnorderedElementsAre(Pair("a", "ended"), Pair("b", "ended"), Pair("c", "ended")));
  EXPECT_EQ(file("runs/a/summary.json"), summary);
  EXPECT_THAT(file("calls"), AllOf(Not(HasSubstr("/runs/a.toml")), HasSubstr("/runs/b.toml"),
                                   HasSubstr("/runs/c.toml")));
  // What they were to continue is gone.
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "runs/b/checkpoints"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "runs/c/checkpoints"));
}

// Two failures are enough to see that there is no server for this workload.
TEST_F(RunPools, StartRunsByThemselvesWithoutAServer) {
  for (const char* name : {"d", "e"}) {
    tasks_.push_back({.name = name, .files = files_of(folder_.path(), name, false)});
  }
  for (RunTask& task : tasks_) task.workload = "model=softmax";
  run("[[ $1 != serve-runs ]] || exit 3; finish");
  EXPECT_EQ(notes_.ended.size(), 5U);
  EXPECT_THAT(notes_.ended, testing::Each(Pair(testing::_, "ended")));
  EXPECT_THAT(notes_.failures, ElementsAre("ended with code 3", "ended with code 3"));
  EXPECT_THAT(file("calls"),
              HasSubstr("serve-runs --config " + (folder_.path() / "runs/a.toml").string() + "\n"));
}

TEST_F(RunPools, StartNoServerForASingleRun) {
  tasks_[0].workload = "model=softmax";
  tasks_[1].workload = "model=mlp";
  run("finish");
  EXPECT_THAT(file("calls"), Not(HasSubstr("serve-runs")));
  EXPECT_EQ(notes_.ended.size(), 3U);
}

TEST_F(RunPools, KeepTheWordsOfWhatFailed) {
  run("if [[ $name == b ]]; then echo 'no such thing' >&2; exit 2; fi; finish");
  EXPECT_EQ(notes_.ended.size(), 3U);
  EXPECT_EQ(file("runs/b.failed"), "no such thing\n");
  // It is a result: not tried again.
  run("finish");
  EXPECT_EQ(notes_.started.size(), 3U);
}

TEST_F(RunPools, TryAgainWhatWasKilled) {
  run("if [[ $name == b ]]; then kill -KILL $$; fi; if [[ $name == c ]]; then exit 25; fi; finish");
  EXPECT_THAT(notes_.ended["b"], HasSubstr("killed by signal 9"));
  EXPECT_EQ(notes_.ended["c"], "ended with code 25");
  EXPECT_FALSE(std::filesystem::exists(tasks_[1].files.failed));
  notes_.started.clear();
  run("finish");
  EXPECT_THAT(notes_.started, ElementsAre("b", "c"));
}

// Another program trains it, in this folder.
TEST_F(RunPools, LeaveRunsWithPythonRulesToPython) {
  tasks_[1].is_pythons = true;
  run("finish");
  EXPECT_THAT(notes_.started, ElementsAre("a", "c"));
  EXPECT_THAT(notes_.ended["b"], HasSubstr("its rule is a function in Python"));
  folder_.write("runs/b/summary.json", "{}");
  forget();
  run("exit 9");
  EXPECT_TRUE(notes_.started.empty() && notes_.ended.empty());
}

// A plug-in that crashes, say: once may have been the machine.
TEST_F(RunPools, AreFailedWhenTheyCrashTwice) {
  for (const char* const signal : {"SEGV", "ABRT"}) {
    SCOPED_TRACE(signal);
    const std::string crashes = std::string("if [[ $name == b ]]; then echo 'a word' >&2; kill -") +
                                signal + " $$; fi; finish";
    forget();
    run(crashes);
    EXPECT_THAT(notes_.ended["b"], HasSubstr("killed by signal"));
    EXPECT_FALSE(std::filesystem::exists(tasks_[1].files.failed));
    forget();
    run(crashes);
    EXPECT_THAT(notes_.started, ElementsAre("b"));
    EXPECT_EQ(notes_.ended["b"], "ended");
    EXPECT_THAT(file("runs/b.failed"), MatchesRegex("a word\nkilled by signal [0-9]+ \\(.*\\), "
                                                    "for the second time\n"));
    // As every failed run, it is tried again where somebody deletes that.
    std::filesystem::remove(tasks_[1].files.failed);
    forget();
    run("finish");
    EXPECT_EQ(notes_.ended["b"], "ended");
    std::filesystem::remove_all(tasks_[1].files.folder);
  }
}

// The folder of a run that failed, or that another program has begun.
TEST_F(RunPools, GoOnWithCheckpoints) {
  folder_.write("runs/a/config.toml", "");
  folder_.write("runs/a/checkpoints/step-3.safetensors", "");
  folder_.write("runs/b/config.toml", "");
  folder_.write("runs/b/metrics.jsonl", "");
  run("finish");
  EXPECT_THAT(file("calls"), ContainsRegex("train --resume [^ ]*/workers/[^/ ]*/runs/a "));
  EXPECT_TRUE(std::filesystem::exists(tasks_[0].files.folder / "config.toml"));
  // What had come to nothing yet begins anew.
  EXPECT_FALSE(std::filesystem::exists(tasks_[1].files.folder / "metrics.jsonl"));
}

// The state that others have left may be damaged, so that only a whole run says that it fails.
TEST_F(RunPools, BeginAnewBeforeTheyFail) {
  folder_.write("runs/b/config.toml", "");
  folder_.write("runs/b/checkpoints/step-3.safetensors", "");
  run("if [[ $name$2 == b--resume ]]; then echo 'lines were lost' >&2; exit 2; fi; finish");
  EXPECT_THAT(notes_.started, ElementsAre("a", "b", "c"));
  EXPECT_EQ(notes_.ended["b"], "ended");
  EXPECT_FALSE(std::filesystem::exists(tasks_[1].files.failed));
  std::filesystem::remove_all(tasks_[1].files.folder);
  folder_.write("runs/b/config.toml", "");
  folder_.write("runs/b/checkpoints/step-3.safetensors", "");
  run("echo \"no $2 in $out\" >&2; exit 2");
  EXPECT_EQ(file("runs/b.failed"), "no --config in " + tasks_[1].files.folder.string() + "\n")
      << "wherever it was made";
}

// A run that somebody has done meanwhile is compared with it.
TEST_F(RunPools, CompareSecondResults) {
  const std::string other = tasks_[0].files.folder.string();
  const std::string meanwhile =
      "if [[ $name == a ]]; then mkdir -p " + other +
      "; echo '{\"weights_sha256\": \"'$hash'\"}' >" + other +
      "/summary.json; fi; finish; echo '{\"weights_sha256\": \"12\"}' >$out/summary.json";
  run("hash=12; " + meanwhile);
  EXPECT_THAT(notes_.seconds, ElementsAre(Pair("a", Publication::Kind::same)));
  EXPECT_EQ(notes_.ended.size(), 3U);
  EXPECT_THAT(differences_in(folder_.path()), IsEmpty());

  for (const RunTask& task : tasks_) std::filesystem::remove_all(task.files.folder);
  notes_.seconds.clear();
  run("hash=34; " + meanwhile);
  EXPECT_THAT(notes_.seconds, ElementsAre(Pair("a", Publication::Kind::differs)));
  EXPECT_EQ(file("runs/a/summary.json"), "{\"weights_sha256\": \"34\"}\n") << "the first is kept";
  EXPECT_THAT(differences_in(folder_.path()),
              ElementsAre(AllOf(HasSubstr("a has two results: " + other +
                                          " of an unknown machine (weights 34), "),
                                HasSubstr("/different/runs/a@"), HasSubstr(" (weights 12)"))));
  EXPECT_THAT(differences_in(folder_.path(), "b"), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "workers"));
}

// Optimizers may remember something that has not changed the weights yet. A run whose program is
// older has no digest, and is compared without.
TEST_F(RunPools, CompareDigestsWhereBothHaveThem) {
  const std::string first = tasks_[0].files.folder.string();
  const auto kind_of_second = [&](const std::string& digest) {
    for (const RunTask& task : tasks_) std::filesystem::remove_all(task.files.folder);
    notes_.seconds.clear();
    run("write() { mkdir -p $1; echo '{\"weights_sha256\": \"12\"'$2'}' >$1/summary.json; }\n"
        "if [[ $name == a ]]; then write " +
        first + " ', \"digest\": \"56\"'; fi; write $out '" + digest + "'");
    return notes_.seconds.at("a");
  };
  EXPECT_EQ(kind_of_second(", \"digest\": \"56\""), Publication::Kind::same);
  EXPECT_EQ(kind_of_second(", \"digest\": \"78\""), Publication::Kind::differs);
  EXPECT_EQ(kind_of_second(""), Publication::Kind::same);
}

// One is checked: it is done again from the beginning, and its result is that which was there.
TEST_F(RunPools, CheckResults) {
  run("finish");
  tasks_[1].is_check = true;
  forget();
  run("finish");
  EXPECT_THAT(notes_.started, ElementsAre("b"));
  EXPECT_THAT(notes_.seconds, ElementsAre(Pair("b", Publication::Kind::same)));
  notes_.seconds.clear();
  run("echo 'no memory module' >&2; exit 2");
  EXPECT_THAT(notes_.seconds, ElementsAre(Pair("b", Publication::Kind::differs)));
  EXPECT_THAT(differences_in(folder_.path()), ElementsAre(HasSubstr(" (failed); accepted: ")));
  EXPECT_TRUE(std::filesystem::exists(tasks_[1].files.folder / "summary.json"));
  EXPECT_FALSE(std::filesystem::exists(tasks_[1].files.failed));
}

TEST_F(RunPools, StopWhatRuns) {
  stop_ = [&] { return std::filesystem::exists(folder_.path() / "begun"); };
  // The first says that it has begun: the second may not have come to its trap yet.
  run("trap 'echo stopped >>" + (folder_.path() / "stopped").string() +
          "; exit 143' TERM; if [[ $name == a ]]; then touch " +
          (folder_.path() / "begun").string() + "; fi; while :; do sleep 0.01; done",
      2);
  EXPECT_LE(notes_.started.size(), 2U);
  EXPECT_EQ(notes_.ended["a"], "ended with code 143");
  EXPECT_THAT(file("stopped"), HasSubstr("stopped"));
}

TEST_F(RunPools, BeginNothingAnewAfterAStop) {
  folder_.write("runs/a/config.toml", "");
  folder_.write("runs/a/checkpoints/step-3.safetensors", "");
  stop_ = [&] { return std::filesystem::exists(folder_.path() / "begun"); };
  run("if [[ $2 != --resume ]]; then finish; exit; fi; trap 'exit 2' TERM; touch " +
      (folder_.path() / "begun").string() + "; while :; do sleep 0.01; done");
  EXPECT_EQ(notes_.ended["a"], "ended with code 2");
  EXPECT_THAT(file("calls"), Not(HasSubstr("--config")));
  EXPECT_FALSE(std::filesystem::exists(tasks_[0].files.failed));
  stop_ = [] { return false; };
  forget();
  run("[[ $2 != --resume ]] || exit 2; finish");
  EXPECT_EQ(notes_.ended["a"], "ended");
}

// Its result is not that of the equal run, so another time it has to be trained.
TEST_F(RunPools, TrainNothingInsteadOfAnEqualRunAfterAStop) {
  for (const char* name : {"config.toml", "summary.json", "checkpoints/step-3.safetensors"}) {
    folder_.write(std::string("equal/") + name, "");
  }
  tasks_[0].equal = folder_.path() / "equal";
  stop_ = [&] { return std::filesystem::exists(folder_.path() / "begun"); };
  run("trap 'finish; exit 0' TERM; touch " + (folder_.path() / "begun").string() +
      "; while :; do sleep 0.01; done");
  EXPECT_EQ(notes_.ended["a"], "ended with code 0");
  EXPECT_THAT(file("calls"), Not(HasSubstr("--config")));
  EXPECT_FALSE(std::filesystem::exists(tasks_[0].files.folder));
}

TEST(ChildProcess, DoesNotOutliveItsParent) {
  const test::TempFolder folder;
  // The end of a pipe that the child inherits: it is closed when the child is gone.
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    const ChildProcess child("/bin/sleep", {"sleep", "100"}, folder.path() / "errors", ends[1]);
    folder.write("ready", "");
    while (true) pause();
  }
  close(ends[1]);
  while (!std::filesystem::exists(folder.path() / "ready")) usleep(1000);
  kill(parent, SIGKILL);
  int status = 0;
  waitpid(parent, &status, 0);
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 0);
  close(ends[0]);
}

}  // namespace
}  // namespace rubato
