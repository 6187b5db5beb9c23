// train_on_elastic_hosts(): hosts on threads of one process.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/hosts/elastic_run.hpp>
#include <rubato/hosts/rendezvous_server.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/run_folder.hpp>

#include "hosts/elastic/failover.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

RunConfiguration small_run() {
  RunConfiguration run;
  run.model = "softmax";
  run.trace = "64";
  run.threads = 1;
  run.epochs = 1;
  return run;
}

// Two hosts, each with a folder of its own.
class ElasticRun : public testing::Test {
 protected:
  ElasticRunOptions options_of(std::size_t host) const {
    return {.out = folder_.path() / std::to_string(host),
            .hosts = {.meeting = {.count = 2, .port = server_.port(), .run = "run"}, .most = 2}};
  }
  std::array<ElasticResult, 2> train(const RunConfiguration& run,
                                     const std::array<ElasticRunOptions, 2>& options) const {
    std::array<ElasticResult, 2> results;
    std::array<std::thread, 2> threads;
    for (std::size_t i = 0; i < 2; ++i) {
      threads[i] = std::thread([&, i] {
        results[i] = train_on_elastic_hosts(run, dense_workload(run), elastic_hosts, options[i]);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return results;
  }

  test::TempFolder folder_;
  RendezvousServer server_{0, {.address = "127.0.0.1"}};
};

TEST_F(ElasticRun, IsThatOfOneHost) {
  const RunConfiguration configuration = small_run();
  std::atomic<int> runs = 0;
  std::array<ElasticRunOptions, 2> options{options_of(0), options_of(1)};
  for (ElasticRunOptions& one : options) {
    one.prepare = [&runs](rubato::Run& run) {
      EXPECT_EQ(run.configuration().model.text(), "softmax");
      ++runs;
    };
  }
  const auto results = train(configuration, options);
  rubato::Run alone(configuration, dense_workload(configuration));
  const RunOutcome outcome = alone.execute();
  EXPECT_EQ(runs, 2);
  for (const ElasticResult& result : results) {
    EXPECT_EQ(result.outcome.end, ElasticOutcome::End::trained);
    ASSERT_TRUE(result.summary);
    EXPECT_EQ(result.summary->weights_sha256, outcome.summary->weights_sha256);
    EXPECT_EQ(result.outcome.steps, outcome.summary->result.steps);
  }
  // One of them has written the run.
  EXPECT_NE(results[0].folder.empty(), results[1].folder.empty());
}

TEST_F(ElasticRun, StopsOnAllHosts) {
  RunConfiguration configuration = small_run();
  configuration.epochs = 100'000;
  std::atomic<int> asked = 0;
  std::array<ElasticRunOptions, 2> options{options_of(0), options_of(1)};
  std::atomic<bool> trains = false;
  options[1].prepare = [&trains](rubato::Run&) { trains = true; };
  options[1].wants_to_stop = [&] { return trains && ++asked > 50; };
  const auto results = train(configuration, options);
  EXPECT_FALSE(results[0].summary);
  EXPECT_FALSE(results[1].summary);
  // The one that writes the run has left a checkpoint.
  ASSERT_NE(results[0].folder.empty(), results[1].folder.empty());
  const auto& folder = results[results[0].folder.empty() ? 1 : 0].folder;
  EXPECT_EQ(CheckpointFolder(folder / "checkpoints", 1).files().size(), 1U);
}

// Trains for longer than the other host.
class LateEnd final : public Observer {
 public:
  explicit LateEnd(std::atomic<bool>& has_ended) : has_ended_(has_ended) {}
  void on_epoch(Training& /*training*/, const EpochRecord& /*epoch*/) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    has_ended_ = true;
  }

 private:
  std::atomic<bool>& has_ended_;
};

// The run could not go on without the late host if the other one had left.
TEST_F(ElasticRun, EndsOnNoHostBeforeAllHaveTrained) {
  const RunConfiguration configuration = small_run();
  std::atomic<bool> has_ended = false;
  ElasticRunOptions late = options_of(1);
  late.prepare = [&](rubato::Run& run) {
    static_cast<void>(run.trainer().add_observer<LateEnd>(has_ended));
  };
  std::thread other([&] {
    static_cast<void>(
        train_on_elastic_hosts(configuration, dense_workload(configuration), elastic_hosts, late));
  });
  static_cast<void>(train_on_elastic_hosts(configuration, dense_workload(configuration),
                                           elastic_hosts, options_of(0)));
  EXPECT_TRUE(has_ended);
  other.join();
}

// Processes may be killed before and after they make the folder of the run.
TEST(HostFolders, OfKilledProcessesAreRemoved) {
  const test::TempFolder folder;
  std::filesystem::create_directories(folder.path() / "rubato-host-before");
  std::filesystem::create_directories(folder.path() / "rubato-host-after" / "run");
  folder.write("rubato-host-other/notes", "of somebody else");
  folder.write("rubato-host-file", "");
  std::filesystem::create_symlink("nowhere", folder.path() / "link");
  for (const char* const old : {"before", "after", "other", "file"}) {
    std::filesystem::last_write_time(
        folder.path() / (std::string("rubato-host-") + old),
        std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  }
  std::filesystem::create_directories(folder.path() / "rubato-host-starting");
  const char* const before = std::getenv("TMPDIR");
  const std::string temporary = before == nullptr ? "" : before;
  setenv("TMPDIR", folder.path().c_str(), 1);
  hosts_detail::HostFolder::remove_leftovers();
  before == nullptr ? unsetenv("TMPDIR") : setenv("TMPDIR", temporary.c_str(), 1);
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    left.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(left, testing::UnorderedElementsAre("link", "rubato-host-file", "rubato-host-other",
                                                  "rubato-host-starting"));
}

}  // namespace
}  // namespace rubato
