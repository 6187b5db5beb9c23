// `rubato train --min-hosts`: hosts are killed, stopped and cut short, and come anew; the run is
// the same.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include "app/background_program.hpp"
#include "app/network_of_its_own.hpp"
#include "app/small_training.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::BackgroundProgram;
using test::NetworkOfItsOwn;
using test::ProgramResult;

using Arguments = std::vector<std::string>;

Arguments with(Arguments first, const Arguments& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

// The number in the environment, if it is set.
int wanted_times(const char* variable, int times) {
  const char* const wanted = std::getenv(variable);
  return wanted != nullptr ? std::stoi(wanted) : times;
}

class ElasticCommand : public test::SmallTraining {
 protected:
  void SetUp() override {
    SmallTraining::SetUp();
    write_trace({32, 64, 160, 96});
    start_server("0");
    port_ = server_->port();
    rendezvous_ = fmt::format("127.0.0.1:{}/run", port_);
  }
  void start_server(const std::string& port) {
    server_ =
        std::make_unique<test::BackgroundRendezvous>(folder_.path(), Arguments{"--port", port});
  }

  // The run of the test on one host, into the folder "one".
  void train_alone() {
    const ProgramResult alone =
        test::rubato(with(with({"train", "--out", "one", "--quiet"}, run_), {}), folder_.path());
    ASSERT_EQ(alone.code, 0) << alone.err;
  }
  // The arguments of one more host of it.
  [[nodiscard]] Arguments host(const Arguments& more) const {
    const Arguments meeting{"train",
                            "--min-hosts=1",
                            "--max-hosts=4",
                            "--host-timeout=" + host_timeout_,
                            fmt::format("--hosts={}", first_),
                            "--rendezvous=" + rendezvous_};
    return with(with(meeting, run_), more);
  }
  // Starts it, into the folder "run"; in a network namespace where one is named.
  BackgroundProgram& start(const Arguments& more = {"--out", "run"},
                           const std::string& network = "") {
    hosts_.push_back(std::make_unique<BackgroundProgram>(host(more), folder_.path(), network));
    return *hosts_.back();
  }
  // Starts so many hosts, and waits until each of them trains along.
  void start_all(int count, const Arguments& more = {"--out", "run"}) {
    first_ = count;
    for (int i = 0; i < count; ++i) start(more);
    wait_until([this] {
      return std::ranges::all_of(hosts_, [](const auto& host) { return has_state(*host); });
    });
  }

  // Starts two hosts, and does not need to see them train: they begin together, however far apart
  // they come, and their run may be short.
  void start_two_that_wait_for_each_other(const Arguments& more = {"--out", "run"}) {
    first_ = 2;
    for (int i = 0; i < 2; ++i) start(with(more, {"--min-hosts", "2"}));
  }

  // Several hosts train the run for as long as the test takes, and have done so for some steps.
  void train_on(int count) {
    train_without_end();
    start_all(count);
    wait_for_lines(20);
  }
  void expect_end(BackgroundProgram& host, int code) const {
    wait_until([&] { return !host.runs(); });
    EXPECT_EQ(host.code(), code) << host.output();
  }
  void forget(std::size_t host) {
    hosts_.erase(hosts_.begin() + static_cast<std::ptrdiff_t>(host));
  }
  void kill_host(std::size_t host) {
    hosts_[host]->end(SIGKILL);
    EXPECT_EQ(hosts_[host]->code(), -SIGKILL) << hosts_[host]->output();
    forget(host);
  }
  [[nodiscard]] std::ptrdiff_t training_hosts() const {
    return std::ranges::count_if(hosts_, [](const auto& host) { return has_state(*host); });
  }

  static bool says(const std::string& text, const char* what) {
    return test::occurrences(text, what) > 0;
  }

  // As test::wait_until(); where it fails, it tells what every host has said and is doing.
  void wait_until(const std::function<bool()>& condition,
                  milliseconds between = milliseconds(20)) const {
    const auto told = [this] {
      std::string all;
      for (const auto& host : hosts_) {
        all +=
            fmt::format("host {}:\n{}{}\n", host->process(), host->output(),
                        host->runs() ? host->stacks() : fmt::format("ended with {}", host->code()));
      }
      return all;
    };
    test::wait_until(condition, told, between);
  }
  // Of a run, how many steps and epochs it has done.
  [[nodiscard]] std::ptrdiff_t lines(const std::string& run) const {
    std::ifstream in(file(run) / "metrics.jsonl");
    return std::count(std::istreambuf_iterator<char>(in), {}, '\n');
  }
  void wait_for_lines(std::ptrdiff_t count) const {
    wait_until([this, count] { return lines("run") >= count; });
  }
  // Whether it trains along: it keeps metrics then.
  static bool has_state(const BackgroundProgram& host) { return !open_metrics(host).empty(); }
  // Which of them it keeps.
  static std::string open_metrics(const BackgroundProgram& host) {
    return open_metrics(host.process());
  }
  static std::string open_metrics(pid_t process) {
    std::error_code error;
    for (const fs::directory_entry& entry :
         fs::directory_iterator(fmt::format("/proc/{}/fd", process), error)) {
      std::string target = fs::read_symlink(entry.path(), error);
      if (target.find("metrics.jsonl") != std::string::npos) return target;
    }
    return {};
  }
  // Of the children of a process those that train.
  static std::vector<pid_t> training_children(pid_t parent) {
    std::vector<pid_t> all;
    std::ifstream list(fmt::format("/proc/{0}/task/{0}/children", parent));
    for (pid_t child = 0; list >> child;) {
      if (!open_metrics(child).empty()) all.push_back(child);
    }
    return all;
  }
  // The host that writes the folder "run".
  [[nodiscard]] std::size_t writer() const {
    const std::string wanted = fs::canonical(file("run")) / "metrics.jsonl";
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      if (open_metrics(*hosts_[i]) == wanted) return i;
    }
    return hosts_.size();
  }
  [[nodiscard]] std::size_t another() const { return writer() == 0 ? 1 : 0; }

  // The host that writes the run stands still, and the others, which may not touch its folder, go
  // on beside it.
  [[nodiscard]] std::size_t stop_writer() const {
    const std::size_t stopped = writer();
    hosts_[stopped]->stop();
    wait_until([this] { return lines("run-2") >= 20; });
    return stopped;
  }

  void wait_for_more_lines(const std::string& run) const {
    const std::ptrdiff_t before = lines(run);
    wait_until([&] { return lines(run) >= before + 20; });
  }

  // A run whose end nobody waits for: what is to happen in its middle does, however fast the
  // machine is. It is stopped and then ended by expect_one_run().
  void train_without_end() { run_ = with(run_, {"--epochs", "1000000"}); }
  // All hosts that are left end, after a signal to this one.
  void stop_by(std::size_t host) {
    hosts_[host]->signal(SIGINT);
    for (const auto& any : hosts_) {
      wait_until([&] { return !any->runs(); });
      EXPECT_THAT(any->code(), AnyOf(130, 143)) << any->output();
    }
    hosts_.clear();
  }
  // One of two hosts with these options is asked to terminate, and both end.
  void expect_all_to_stop(const Arguments& options) {
    train_without_end();
    start_all(2, with({"--out", "run"}, options));
    wait_for_lines(20);
    hosts_[another()]->signal(SIGTERM);
    for (const auto& host : hosts_) expect_end(*host, 143);
    hosts_.clear();
    expect_one_run();
  }
  // One host brings the run, which was stopped, to an end three epochs later: it is that of one
  // host from the beginning.
  void expect_one_run(const std::string& run = "run") {
    const Arguments end{"--epochs", fmt::to_string(records(run).back()["epoch"].get<int>() + 3),
                        "--threads", "1"};
    const ProgramResult ended =
        test::rubato(with(with({"train", "--resume", run}, end), {"--quiet"}), folder_.path());
    EXPECT_EQ(ended.code, 0) << ended.err;
    run_ = with(run_, end);
    train_alone();
    expect_the_same(run);
  }
  // All hosts end well, and the run is that of one host.
  void expect_the_same_run() {
    for (const auto& host : hosts_) expect_end(*host, 0);
    expect_the_same("run");
  }
  // In its metrics, too.
  void expect_the_same(const std::string& run) const {
    EXPECT_EQ(hash(run), hash("one"));
    EXPECT_EQ(records(run), records("one"));
  }
  // The metrics without what says how long it took.
  [[nodiscard]] std::vector<nlohmann::json> records(const std::string& run) const {
    std::vector<nlohmann::json> all;
    std::ifstream in(file(run) / "metrics.jsonl");
    for (std::string line; std::getline(in, line);) {
      nlohmann::json record = nlohmann::json::parse(line);
      for (auto it = record.begin(); it != record.end();) {
        const bool timed = it.key().find("seconds") != std::string::npos;
        it = timed ? record.erase(it) : std::next(it);
      }
      all.push_back(std::move(record));
    }
    return all;
  }

  // A random number below `count`.
  std::size_t up_to(std::size_t count) {
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_);
  }

  std::mt19937 random_{7};  // NOLINT(cert-msc51-cpp): the same choices, as far as they go
  // What the run is.
  Arguments run_{"--data",      "mnist:data", "--trace",  "trace.csv", "--on-trace-end", "cycle",
                 "--minibatch", "8",          "--model",  "softmax",   "--rule",         "adascale",
                 "--threads",   "1",          "--epochs", "3"};
  int first_ = 1;
  // The time limit of hosts for each other: long, so that none is given up that the machine has
  // held up, where no test waits for it.
  std::string host_timeout_ = "60";
  static constexpr const char* kBrief = "5";
  int port_ = 0;
  std::string rendezvous_;
  std::unique_ptr<test::BackgroundRendezvous> server_;
  std::vector<std::unique_ptr<BackgroundProgram>> hosts_;
};

// Random ones, at random moments, also those that are just starting; others come in between. Batch
// normalisation, dropout, TensorBoard's files and the best weights are in it. RUBATO_KILLS sets how
// many. The run goes on for as long as they take, however fast the machine is: its end is set after
// them.
TEST_F(ElasticCommand, SurvivesKills) {
  const int kills = wanted_times("RUBATO_KILLS", 20);
  test::write_idx_images(folder_, "large", "train", 160, 28);
  test::write_idx_images(folder_, "large", "t10k", 20, 28);
  run_ =
      with(run_, {"--data", "mnist:large", "--model", "mnist-cnn", "--tensorboard", "--keep-best"});
  train_without_end();
  start_all(3);
  int killed = 0;
  const auto end = std::chrono::steady_clock::now() + seconds(60 + 10 * kills);
  while (killed < kills && std::chrono::steady_clock::now() < end) {
    ASSERT_NO_FATAL_FAILURE(wait_until([&] { return training_hosts() >= 2; }));
    std::this_thread::sleep_for(milliseconds(up_to(300)));
    const std::size_t victim = up_to(hosts_.size());
    if (training_hosts() < 2) continue;
    kill_host(victim);
    ++killed;
    while (hosts_.size() < 2 + up_to(3)) start();
  }
  EXPECT_EQ(killed, kills);

  wait_until([&] { return std::cmp_equal(training_hosts(), hosts_.size()); });
  stop_by(another());
  expect_one_run();
  EXPECT_TRUE(fs::exists(file("run") / "best.pt"));
}

// It is dropped, and the others, which may not touch its folder, go on beside it; when it goes on
// it is one of them again.
TEST_F(ElasticCommand, GoesOnWithoutAHostThatIsStopped) {
  host_timeout_ = kBrief;
  train_on(3);
  const std::string before = open_metrics(*hosts_[writer()]);
  const std::size_t stopped = stop_writer();
  hosts_[stopped]->signal(SIGCONT);
  wait_until([&] {
    const std::string now = open_metrics(*hosts_[stopped]);
    return !now.empty() && now != before;
  });
  wait_for_more_lines("run-2");
  stop_by(stopped);
  expect_one_run("run-2");
  // Nobody goes on with the other folder by mistake.
  const ProgramResult resumed = test::rubato({"train", "--resume", "run"}, folder_.path());
  EXPECT_EQ(resumed.code, 2);
  EXPECT_THAT(resumed.err, HasSubstr("the run continued in " + file("run-2").string()));
}

// Of the bytes that a process has written, to files and to connections.
std::int64_t written_by(pid_t process) {
  std::ifstream in(fmt::format("/proc/{}/io", process));
  std::string word;
  while (in >> word && word != "wchar:") {
  }
  std::int64_t bytes = 0;
  in >> bytes;
  return bytes;
}

// The state of the run is long, so that hosts can die while one is given it.
class ElasticHandover : public ElasticCommand {
 protected:
  void train_long_state_on(int count) {
    // The state is written and checked in less, on a slow machine too.
    host_timeout_ = "20";
    write_trace({8});
    run_ = with(run_, {"--data", "digits", "--model", "mlp:hidden=2048/2048", "--checkpoint-every",
                       "never"});
    train_without_end();
    start_all(count);
    wait_for_lines(2);
  }
  // Waits until a host has begun to give its state after `ask`.
  void wait_for_handover(const BackgroundProgram& giver, const std::function<void()>& ask) const {
    constexpr std::int64_t kBegun = 1'000'000;
    const std::int64_t before = written_by(giver.process());
    ASSERT_GT(before, 0);
    ask();
    wait_until([&] { return written_by(giver.process()) > before + kBegun; }, milliseconds(1));
  }
  [[nodiscard]] std::string groups() const { return test::read_file(file("run") / "hosts.log"); }
  // How often a host has gone on alone.
  [[nodiscard]] std::ptrdiff_t times_alone() const { return test::occurrences(groups(), kAlone); }
  static constexpr const char* kAlone = ": 1 host; gone: ";
  static constexpr const char* kLost = "; lost again in the handover";
  // A host that is killed in the middle of the handover may have come to its end all the same,
  // where this test was held up: then another one is tried.
  static constexpr int kTrials = 10;
};

// A host that comes dies while it is given the state: the run has had a group that never trained.
TEST_F(ElasticHandover, IsToldOfWhenItsGroupIsLost) {
  train_long_state_on(1);
  for (int trial = 1; trial <= kTrials && !says(groups(), kLost); ++trial) {
    wait_for_handover(*hosts_[0], [this] { start(); });
    kill_host(1);
    wait_until([&] { return times_alone() == trial && groups().ends_with('\n'); });
  }
  EXPECT_THAT(groups(),
              MatchesRegex("[^\n]* group 1: 1 host;[^\n]*\n([^\n]*\n)*"
                           "[^\n]*: 2 hosts; new: [0-9]+;[^\n]*; lost again in the handover\n"
                           "[^\n]*: 1 host; gone: [0-9]+;[^\n]*\n"));
  stop_by(0);
}

// A host that was left behind comes back, and the one that gives it what it has missed dies in the
// middle of that: the older state is all there is, and the run goes on from it.
TEST_F(ElasticHandover, LeavesTheOlderStateWhereTheNewerOneIsLost) {
  train_long_state_on(2);
  for (int trial = 1; trial <= kTrials; ++trial) {
    const std::size_t gives = writer();
    BackgroundProgram& behind = *hosts_[1 - gives];
    const std::ptrdiff_t alone = times_alone();
    behind.stop();
    wait_until([&] { return times_alone() > alone; });
    const std::ptrdiff_t before = lines("run");
    wait_until([&] { return lines("run") >= before + 3; });
    wait_for_handover(*hosts_[gives], [&] { behind.signal(SIGCONT); });
    kill_host(gives);
    wait_until([&] { return !behind.runs() || says(behind.output(), kAlone); });
    ASSERT_TRUE(behind.runs()) << behind.output();
    if (says(behind.output(), kLost)) break;
    start();
    wait_until([this] { return has_state(*hosts_[1]); });
  }
  EXPECT_THAT(hosts_[0]->output(),
              AllOf(HasSubstr(kLost),
                    ContainsRegex("after [1-9][0-9]* steps, group [0-9]+: 1 host; gone: ")));
  stop_by(0);
}

// It does not know that the others have gone on without it.
TEST_F(ElasticCommand, StopsAloneWhereTheOthersHaveGoneOn) {
  host_timeout_ = kBrief;
  train_on(3);
  const std::size_t stopped = stop_writer();
  hosts_[stopped]->signal(SIGINT);
  hosts_[stopped]->signal(SIGCONT);
  expect_end(*hosts_[stopped], 130);
  EXPECT_THAT(
      hosts_[stopped]->output(),
      HasSubstr("others may continue the run; to continue from this copy of it: rubato train "
                "--resume run\n"));
  forget(stopped);
  wait_for_more_lines("run-2");
  // The run is open to those who come.
  BackgroundProgram& late = start();
  wait_until([&] { return has_state(late); });
  const std::string groups = test::read_file(file("run-2") / "hosts.log");
  EXPECT_THAT(groups, AllOf(HasSubstr(": 2 hosts; gone: "), HasSubstr("; formed in ")));
  stop_by(0);
  expect_one_run("run-2");
}

// As systemd does it. Those who come then take part, or do no harm.
TEST_F(ElasticCommand, GoesOnAtARendezvousThatIsStartedAgain) {
  run_ = with(run_, {"--checkpoint-every", "never"});
  train_on(3);
  server_->end(SIGKILL);
  start_server(fmt::to_string(port_));
  const std::size_t first = writer();
  kill_host(first);
  wait_until([this] { return writer() < hosts_.size(); });
  wait_for_more_lines("run");
  start();
  wait_until([this] { return has_state(*hosts_.back()); });
  wait_for_more_lines("run");
  EXPECT_FALSE(fs::exists(file("run-2")));
  stop_by(0);
  expect_one_run();
}

// As of a full disk: nothing more can be written to its files.
TEST_F(ElasticCommand, GoesOnWithoutAHostWhoseDiskIsFull) {
  train_on(2);
  const std::size_t full = writer();
  const rlimit nothing{.rlim_cur = 0, .rlim_max = 0};
  ASSERT_EQ(prlimit(hosts_[full]->process(), RLIMIT_FSIZE, &nothing, nullptr), 0);
  expect_end(*hosts_[full], 24);
  forget(full);
  wait_until([this] { return writer() == 0; });
  wait_for_more_lines("run");
  stop_by(0);
  expect_one_run();
}

// A file system of a test, where such may be mounted.
class Disk {
 public:
  // `mount` is a shell's command, in which {0} is the folder.
  Disk(fs::path where, const char* mount) : where_(std::move(where)) {
    fs::create_directory(where_);
    is_there_ = run(mount);
  }
  ~Disk() {
    if (is_there_) run("umount -l {0}");
  }
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  [[nodiscard]] bool is_there() const { return is_there_; }
  bool run(const char* command) const {
    const std::string filled = fmt::format(fmt::runtime(command), where_.string());
    return std::system(fmt::format("({}) >/dev/null 2>&1", filled).c_str()) == 0;
  }

 private:
  fs::path where_;
  bool is_there_ = false;
};

constexpr const char* kSmallDisk = "mount -t tmpfs -o size=24m none {0}";
constexpr const char* kFillDisk = "dd if=/dev/zero of={0}/other bs=64k";

// There is no checkpoint yet, and all hosts would write to the same disk.
TEST_F(ElasticCommand, KeepsARunThatNoHostCanWrite) {
  const Disk disk(file("disk"), kSmallDisk);
  if (!disk.is_there()) GTEST_SKIP() << "no file systems can be mounted";
  train_without_end();
  start_all(3, {"--out", "disk/run", "--checkpoint-every", "never"});
  wait_until([this] { return lines("disk/run") >= 20; });
  disk.run(kFillDisk);
  std::string told;
  for (const auto& host : hosts_) {
    expect_end(*host, 24);
    told += host->output();
  }
  hosts_.clear();
  EXPECT_THAT(told, HasSubstr("No space left on device"));
  EXPECT_THAT(told, HasSubstr("is kept; to continue: rubato train --resume "));
  EXPECT_THAT(told, HasSubstr("stopped after "));
  const std::string word = "--resume ";
  const std::size_t begin = told.rfind(word) + word.size();
  const std::string kept = told.substr(begin, told.find('\n', begin) - begin);
  expect_one_run(kept);
  fs::remove_all(kept);
}

// Each host has a folder on a disk of its own, and that of the first one fails.
class ElasticDisks : public ElasticCommand {
 protected:
  void expect_to_go_on_at_another_disk(const Disk& disk, const char* fail) {
    train_without_end();
    start({"--out", "disk/run"});
    wait_until([this] { return lines("disk/run") >= 1; });
    start({"--out", "run"});
    wait_until([this] { return has_state(*hosts_.back()); });
    disk.run(fail);
    expect_end(*hosts_[0], 24);
    told_ = hosts_[0]->output();
    forget(0);
    wait_for_lines(20);
    wait_for_more_lines("run");
    EXPECT_THAT(hosts_[0]->output(), HasSubstr("the run continues in run after "));
    stop_by(0);
  }
  // What the host at the failing disk has said.
  std::string told_;
};

TEST_F(ElasticDisks, MayBeFull) {
  const Disk disk(file("disk"), kSmallDisk);
  if (!disk.is_there()) GTEST_SKIP() << "no file systems can be mounted";
  expect_to_go_on_at_another_disk(disk, kFillDisk);
  expect_one_run();
}

// The kernel makes the file system read-only when it finds an error.
TEST_F(ElasticDisks, MayBecomeReadOnly) {
  const Disk disk(file("disk"),
                  "truncate -s 64M {0}.image && mkfs.ext4 -q {0}.image && "
                  "mount -o loop,errors=remount-ro {0}.image {0}");
  if (!disk.is_there()) GTEST_SKIP() << "no file systems can be mounted";
  expect_to_go_on_at_another_disk(disk, "mount -o remount,abort {0}");
  EXPECT_THAT(told_, HasSubstr("Read-only file system"));
}

// Whoever read what the writing host prints goes away.
TEST_F(ElasticCommand, GoesOnWithoutAHostThatNobodyReads) {
  train_without_end();
  std::string first = fmt::format("cd {} && {{ {}", folder_.path().string(), RUBATO_PROGRAM);
  for (const std::string& word : host({"--out", "run"})) first += " '" + word + "'";
  first += " 2>said; echo $? >code; } | while [ ! -e go ]; do head -n 1 >/dev/null; done &";
  ASSERT_EQ(std::system(first.c_str()), 0);
  wait_for_lines(1);
  start();
  wait_until([this] { return has_state(*hosts_[0]); });
  folder_.write("go", "");
  // The shell makes the file before it writes to it.
  wait_until([this] { return test::read_file(file("code")).ends_with('\n') && writer() == 0; });
  EXPECT_EQ(test::read_file(file("code")), "24\n");
  EXPECT_THAT(test::read_file(file("said")),
              HasSubstr("cannot write the output: Broken pipe; others may continue the run"));
  wait_for_more_lines("run");
  EXPECT_FALSE(fs::exists(file("run-2")));
  stop_by(0);
  expect_one_run();
}

// One of two hosts is cut off for ten seconds from the other one, and from the rendezvous. The
// other one waits for it.
TEST_F(ElasticCommand, TakesBackAHostThatWasCutOff) {
  host_timeout_ = kBrief;
  const NetworkOfItsOwn network;
  if (!network.is_there()) GTEST_SKIP() << "no network namespaces: not root, or no ip";
  train_without_end();
  first_ = 2;
  rendezvous_.replace(0, rendezvous_.find(':'), network.here());
  const Arguments both{"--out", "run", "--min-hosts", "2", "--interface"};
  start(with(both, {network.here()}));
  start(with(both, {network.there()}), network.name());
  wait_for_lines(20);
  network.set_link("down");
  std::this_thread::sleep_for(seconds(10));
  const std::ptrdiff_t before = lines("run");
  network.set_link("up");
  // The one that was cut off may have been the first, which keeps its folder.
  std::string run;
  wait_until([&] {
    run = fs::exists(file("run-2")) ? "run-2" : "run";
    return lines(run) > before;
  });
  wait_for_more_lines(run);
  stop_by(0);
  expect_one_run(run);
}

// As whoever takes hosts away does it: Kubernetes, Slurm, whoever gives notice of a preemption.
TEST_F(ElasticCommand, GoesOnWithoutAHostThatIsAskedToTerminate) {
  train_on(3);
  for (const bool writes : {false, true}) {
    const std::size_t leaver = writes ? writer() : another();
    hosts_[leaver]->end(writes ? SIGTERM : SIGUSR2);
    EXPECT_EQ(hosts_[leaver]->code(), 0) << hosts_[leaver]->output();
    EXPECT_THAT(hosts_[leaver]->output(),
                ContainsRegex("leaves the run after [0-9]+ steps; the other hosts continue it\n"));
    forget(leaver);
    wait_until([this] { return writer() < hosts_.size(); });
    wait_for_more_lines("run");
    EXPECT_FALSE(fs::exists(file("run-2")));
  }
  // Nothing is redone: whoever goes has done the last step with the others.
  EXPECT_THAT(test::read_file(file("run") / "hosts.log"), Not(HasSubstr("is lost")));
  stop_by(0);
  expect_one_run();
}

// At random moments, and of random hosts, as fast as they come. RUBATO_LEAVES sets how many.
TEST_F(ElasticCommand, SurvivesLeaves) {
  const int leaves = wanted_times("RUBATO_LEAVES", 10);
  run_ = with(run_, {"--tensorboard"});
  train_without_end();
  start_all(3);
  std::vector<double> took;
  while (std::cmp_less(took.size(), leaves)) {
    ASSERT_NO_FATAL_FAILURE(wait_until([&] { return training_hosts() >= 2; }));
    std::this_thread::sleep_for(milliseconds(up_to(300)));
    const std::size_t leaver = up_to(hosts_.size());
    if (!has_state(*hosts_[leaver])) continue;
    const auto begin = std::chrono::steady_clock::now();
    hosts_[leaver]->end(up_to(2) == 0 ? SIGTERM : SIGUSR2);
    took.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    ASSERT_EQ(hosts_[leaver]->code(), 0) << hosts_[leaver]->output();
    forget(leaver);
    while (hosts_.size() < 2 + up_to(3)) start();
  }
  std::ranges::sort(took);
  RecordProperty("median_milliseconds", static_cast<int>(1000 * took[took.size() / 2]));
  RecordProperty("longest_milliseconds", static_cast<int>(1000 * took.back()));
  wait_until([&] { return std::cmp_equal(training_hosts(), hosts_.size()); });
  stop_by(0);
  expect_one_run();
}

TEST_F(ElasticCommand, StopsWhereTooFewWouldRemain) {
  expect_all_to_stop({"--min-hosts", "2"});
}

TEST_F(ElasticCommand, StopsAllWhereItIsToldTo) {
  expect_all_to_stop({"--on-term", "stop"});
}

// What supervisors do. The rendezvous knows the run by its name all the time.
TEST_F(ElasticCommand, IsOpenedAgainByTheSameCommand) {
  train_without_end();
  const Arguments command{"--out", "run", "--continue"};
  first_ = 2;
  const auto start_both = [&] {
    for (int i = 0; i < 2; ++i) start(command);
    wait_until([this] { return has_state(*hosts_[0]) && has_state(*hosts_[1]); });
    wait_for_more_lines("run");
  };
  start_both();
  stop_by(another());
  // Without a word of going on, or a checkpoint, it stays closed.
  BackgroundProgram& closed = start({"--out", "run"});
  expect_end(closed, 29);
  EXPECT_THAT(closed.output(), HasSubstr("hosts that bring its newest checkpoint open it again"));
  hosts_.clear();
  start_both();
  // All at once, as in a power failure.
  for (const auto& host : hosts_) host->end(SIGKILL);
  hosts_.clear();
  start_both();
  stop_by(0);
  expect_one_run();
  EXPECT_FALSE(fs::exists(file("run-2")));
}

// Those that have nothing wait for the one that has it.
TEST_F(ElasticCommand, IsOpenedAgainByTheHostThatBringsTheCheckpoint) {
  train_on(2);
  stop_by(0);
  first_ = 2;
  BackgroundProgram& empty = start({"--out", "elsewhere", "--continue"});
  std::this_thread::sleep_for(seconds(1));
  EXPECT_TRUE(empty.runs()) << empty.output();
  start({"--resume", "run"});
  wait_until([this] { return has_state(*hosts_[0]) && has_state(*hosts_[1]); });
  wait_for_more_lines("run");
  EXPECT_FALSE(fs::exists(file("elsewhere")));
  stop_by(0);
  expect_one_run();
}

// The run that it waits for is none of its business then.
TEST_F(ElasticCommand, EndsAfterASignalToAHostThatWaits) {
  first_ = 2;
  BackgroundProgram& alone = start({"--out", "run", "--min-hosts", "2"});
  wait_until([&] { return !alone.output().empty(); });
  alone.signal(SIGINT);
  expect_end(alone, 130);
  EXPECT_THAT(alone.output(), HasSubstr("stopped by a signal before it took part in the run\n"));
  hosts_.clear();
  // Those that come later are not stopped by it.
  train_alone();
  start_two_that_wait_for_each_other();
  expect_the_same_run();
  EXPECT_THAT(hosts_[0]->output() + hosts_[1]->output(), HasSubstr("\n2 hosts\n"));
  EXPECT_EQ(std::min(hosts_[0]->output(), hosts_[1]->output()), "");
}

TEST_F(ElasticCommand, EndsAndGoesOnFromACheckpointUnderAnotherName) {
  start_two_that_wait_for_each_other();
  for (const auto& host : hosts_) expect_end(*host, 0);
  hosts_.clear();
  // Another run needs another name.
  BackgroundProgram& late = start({"--out", "late", "--min-hosts", "2"});
  expect_end(late, 29);
  EXPECT_EQ(late.output(),
            "rubato train: the run of that name has ended; another one needs another name at the "
            "rendezvous\n");
  hosts_.clear();
  const Arguments options = std::exchange(run_, {"--threads", "1"});
  train_without_end();
  rendezvous_ += "-2";
  start({"--resume", "run"});
  start({"--resume", "run"});
  wait_until([this] { return has_state(*hosts_[0]) && has_state(*hosts_[1]); });
  forget(writer());
  wait_until([this] { return writer() == 0; });
  wait_for_more_lines("run");
  stop_by(0);
  run_ = options;
  expect_one_run();
}

// What there is of the run is kept.
TEST_F(ElasticCommand, EndsWithACheckpointWhereNoGroupCanBeFormed) {
  host_timeout_ = kBrief;
  train_on(2);
  server_->end(SIGKILL);
  const std::size_t first = writer();
  hosts_[first]->end(SIGKILL);
  BackgroundProgram& left = *hosts_[1 - first];
  expect_end(left, 28);
  EXPECT_THAT(left.output(),
              HasSubstr("others may continue the run; to continue from this copy of it: "
                        "rubato train --resume run"));
  EXPECT_FALSE(fs::is_empty(file("run") / "checkpoints"));
}

TEST_F(ElasticCommand, RefusesWhoTrainsSomethingElse) {
  train_without_end();
  start_all(1);
  BackgroundProgram& other = start({"--out", "run", "--lr", "0.5"});
  expect_end(other, 2);
  EXPECT_EQ(other.output(),
            "rubato train: the hosts of the run refuse this one: it has another --lr (0.5, here "
            "0.01); accepted: the same on all hosts\n");
  for (const auto& [option, difference] :
       {std::pair("--cores", "5, here 8"), std::pair("--max-hosts", "5, here 4"),
        std::pair("--hosts", "2, here 1")}) {
    BackgroundProgram& another =
        start({"--out", "run", option, std::string(difference).substr(0, 1)});
    expect_end(another, 2);
    EXPECT_THAT(another.output(), HasSubstr(fmt::format("another {} ({})", option, difference)));
  }
  // Data differ under the same name.
  test::write_idx_images(folder_, "data2", "train", 400, 12);
  test::write_idx_images(folder_, "data2", "t10k", 100, 12);
  BackgroundProgram& unequal = start({"--out", "run", "--data", "mnist:data2"});
  expect_end(unequal, 2);
  EXPECT_THAT(
      unequal.output(),
      HasSubstr("rubato train: the data of this host, or its model's file, differ from those of "
                "the other hosts: "));
  wait_for_more_lines("run");
  EXPECT_TRUE(hosts_[0]->runs());
}

// As that of a disk that is not mounted any more.
TEST_F(ElasticCommand, SaysThatTheFolderHasGone) {
  train_on(2);
  const std::size_t first = writer();
  // A checkpoint would make the folder again.
  hosts_[first]->stop();
  fs::rename(file("run"), file("elsewhere"));
  kill_host(first);
  // The new folder has the old lines before anything is said of it.
  wait_until([this] { return says(hosts_[0]->output(), "the run continues in run after "); });
  EXPECT_THAT(hosts_[0]->output(),
              HasSubstr("the folder of the run is gone; is its disk still mounted?\n"));
  wait_for_more_lines("run");
  stop_by(0);
  expect_one_run();
}

// The first host makes the folder again before it ends, with what it can still write.
TEST_F(ElasticCommand, SaysThatTheFolderIsNoLongerThatOfTheRun) {
  train_on(2);
  const std::size_t first = writer();
  hosts_[first]->stop();
  fs::rename(file("run"), file("elsewhere"));
  fs::create_directories(file("run") / "checkpoints");
  kill_host(first);
  wait_until([this] { return says(hosts_[0]->output(), "the run continues in run-2 after "); });
  EXPECT_THAT(
      hosts_[0]->output(),
      HasSubstr("run: there is no config.toml; is the disk of the run still mounted?\nthe run "));
  EXPECT_THAT(hosts_[0]->output(), Not(HasSubstr("accepted")));
  stop_by(0);
}

// It would join, and end when it is given the state.
TEST_F(ElasticCommand, RefusesAFolderForTemporaryFilesThatIsNoneBeforeItJoins) {
  train_without_end();
  start_all(1);
  std::string command = "TMPDIR=/nowhere/at-all \"$0\"";
  for (const std::string& word : host({"--out", "other"})) command += " '" + word + "'";
  const ProgramResult other = test::shell(command, folder_.path());
  EXPECT_EQ(other.code, 2);
  EXPECT_EQ(other.err,
            "rubato train: $TMPDIR: '/nowhere/at-all' is not a folder; accepted: one in which this "
            "host can keep what it has of the run\n");
  wait_for_more_lines("run");
  EXPECT_THAT(hosts_[0]->output(), Not(HasSubstr("joined")));
  stop_by(0);
}

// Every host says what one of them has found.
TEST_F(ElasticCommand, SaysOnEachHostWhyTheRunCannotBegin) {
  train_alone();
  start_two_that_wait_for_each_other({"--from", "one@1", "--out", "fork"});
  for (const auto& host : hosts_) {
    expect_end(*host, 2);
    EXPECT_THAT(host->output(), HasSubstr("--from: several hosts cannot begin a fork; accepted: "));
    EXPECT_THAT(host->output(), Not(HasSubstr("was stopped")));
  }
  const ProgramResult launched = test::rubato(
      with({"launch", "--hosts", "3", "--", "train", "--from", "one@1", "--out", "other"}, run_),
      folder_.path());
  EXPECT_EQ(launched.code, 2);
  EXPECT_THAT(launched.err, HasSubstr("--from: several hosts cannot begin a fork"));
  EXPECT_THAT(launched.err, Not(HasSubstr("stopped")));
}

// It would have been empty.
TEST_F(ElasticCommand, LeavesNoCopyOfAFirstStep) {
  host_timeout_ = kBrief;
  write_trace({12'000});
  run_ = with(run_, {"--data", "digits", "--model", "mlp:hidden=1024/1024"});
  train_without_end();
  // Together: one alone would come to its second step.
  start_all(2, {"--out", "run", "--min-hosts", "2"});
  const std::size_t first = writer();
  hosts_[first]->stop();
  server_->end(SIGKILL);
  BackgroundProgram& left = *hosts_[1 - first];
  expect_end(left, 28);
  EXPECT_FALSE(fs::exists(file("run-2"))) << left.output();
}

// The launcher starts killed hosts again, and the rendezvous, which the hosts that live restore.
TEST_F(ElasticCommand, IsLaunchedAndStartsAgainWhatIsKilled) {
  train_without_end();
  const auto server_of = [](pid_t parent) {
    std::ifstream list(fmt::format("/proc/{0}/task/{0}/children", parent));
    for (pid_t child = 0; list >> child;) {
      const std::string line = test::read_file(fmt::format("/proc/{}/cmdline", child));
      if (line.starts_with(std::string("rubato\0rendezvous\0", 18))) return child;
    }
    return pid_t{0};
  };
  const ProgramResult result = test::rubato(
      with({"launch", "--hosts", "2", "--min-hosts", "1", "--", "train", "--out", "run"}, run_),
      folder_.path(), [&, this](pid_t process, const fs::path&) {
        std::vector<pid_t> training;
        const auto both_train = [&] {
          training = training_children(process);
          return training.size() == 2;
        };
        const auto kill_one = [&] {
          wait_until(both_train);
          const pid_t victim = training.back();
          kill(victim, SIGKILL);
          wait_until([&] { return open_metrics(victim).empty(); });
          wait_until(both_train);
        };
        kill_one();
        const pid_t server = server_of(process);
        kill(server, SIGKILL);
        wait_until([&] {
          const pid_t now = server_of(process);
          return now != 0 && now != server;
        });
        // As long as the hosts may take to put there again what it knew.
        std::this_thread::sleep_for(seconds(2));
        kill_one();
        wait_for_more_lines("run");
        kill(process, SIGINT);
      });
  EXPECT_THAT(result.code, AnyOf(130, 143)) << result.err;
  EXPECT_THAT(result.err, HasSubstr("to continue: rubato train --resume run"));
  expect_one_run();
}

// As the first process of a container it is given the children that others have left. Signals have
// no effect on such a process before it handles them: it does when its host trains.
TEST_F(ElasticCommand, IsLaunchedAsTheFirstProcess) {
  const std::string command = fmt::format(
      "cd {} && unshare --pid --fork --mount-proc bash -c '(sleep 0.1 &); (for i in {{1..60}}; do "
      "sleep 1; ps --ppid 1 -o stat= >states; grep -q Z states || break; done; "
      "until [ -s run/metrics.jsonl ]; do sleep 0.1; done; kill -INT 1) & "
      "exec {} launch --hosts 1 -- train --epochs 1000000 --out run --quiet' 2>said",
      folder_.path().string(), RUBATO_PROGRAM);
  if (std::system("unshare --pid --fork --mount-proc true 2>/dev/null") != 0) {
    GTEST_SKIP() << "no namespaces of processes: not root";
  }
  static_cast<void>(std::system(command.c_str()));
  EXPECT_THAT(test::read_file(file("states")), Not(HasSubstr("Z")));
}

// To a supervisor, a run that was stopped is not complete.
TEST_F(ElasticCommand, WaitsForTheCheckpointNoLongerThanItsTimeLimit) {
  host_timeout_ = kBrief;
  train_without_end();
  start_all(2);
  wait_for_lines(20);
  stop_by(0);
  first_ = 2;
  BackgroundProgram& empty = start({"--out", "elsewhere", "--continue"});
  wait_until([&] { return !empty.runs(); });
  EXPECT_EQ(empty.code(), 29);
  EXPECT_THAT(empty.output(), HasSubstr("hosts that bring its newest checkpoint open it again"));
}

}  // namespace
}  // namespace rubato
