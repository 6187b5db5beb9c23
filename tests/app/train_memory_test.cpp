// Trainings that do not get the memory they need.

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include "app/run_program.hpp"
#include "app/small_training.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using test::ProgramResult;

constexpr int kExitCode = 25;

class TrainMemory : public test::SmallTraining {};

// Sizes are known before anything is allocated. A limit that every machine can set: libtorch itself
// has room below it.
TEST_F(TrainMemory, IsRefusedBeforeTheFirstStepWhereItCannotFit) {
  write_trace({12'000});
  const ProgramResult result = test::shell(
      "ulimit -v 4000000 && exec \"$0\" train --model mlp --trace trace.csv --minibatch 1 "
      "--reduce sharded --threads 2 --epochs 1 --out run",
      folder_.path());
  EXPECT_EQ(result.code, kExitCode) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("rubato train: training needs 12000 gradient buffers of"),
                                HasSubstr("what ulimit -v leaves is"), Not(HasSubstr("frame #"))));
  EXPECT_FALSE(fs::exists(file("run")));
}

// Nothing waits for ever, and nobody reads a stack, where there is hardly room for the libraries:
// OpenBLAS would ask for its buffers without end.
TEST_F(TrainMemory, EndsInOneLineWhereThereIsHardlyRoomForTheLibraries) {
  write_trace({64});
  const auto under_limit = [&](int kibibytes, const std::string& command) {
    return test::shell(
        fmt::format("ulimit -v {} && exec timeout --signal=KILL 60 {}", kibibytes, command),
        folder_.path());
  };
  int refused = 0;
  // How much the libraries need may depend on the number of CPUs.
  for (int kibibytes = 700'000; kibibytes <= 16'000'000; kibibytes += kibibytes / 7) {
    // What the libraries do before main() is theirs: this loads them and says how it is started.
    constexpr int kUsage = 2;
    if (under_limit(kibibytes, "\"$0-train\"").code != kUsage) continue;
    const ProgramResult result = under_limit(kibibytes,
                                             "\"$0\" train --model mlp --engine libtorch --trace "
                                             "trace.csv --on-trace-end hold --threads 2 --epochs 1 "
                                             "--quiet --out run-" +
                                                 std::to_string(kibibytes));
    if (result.code == 0) break;
    ++refused;
    EXPECT_EQ(result.code, kExitCode) << kibibytes << result.err;
    EXPECT_THAT(result.err,
                AllOf(HasSubstr("rubato train: "), HasSubstr("what ulimit -v leaves is"),
                      Not(HasSubstr("frame #"))));
  }
  EXPECT_GT(refused, 0);
}

// The size of a process's address space in bytes.
rlim_t address_space_of(pid_t process) {
  constexpr rlim_t kKibi = 1024;
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  rlim_t kibibytes = 0;
  for (std::string word; status >> word;) {
    if (word == "VmSize:") status >> kibibytes;
  }
  return kibibytes * kKibi;
}

// After the first checkpoint the program gets nothing more. Every step needs eight megabytes more
// than the one before, so that one of the next does not find them. All but the first have a
// fortieth core, which is slow: there is time to take it.
TEST_F(TrainMemory, ThatRunsOutLeavesACheckpointToGoOnFrom) {
  std::vector<int> trace;
  for (int step = 1; step <= 11; ++step) trace.push_back(160 * step);
  write_trace(trace);
  const auto take_the_rest = [this](pid_t process, const fs::path&) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    // Not a file that is still being written.
    const auto has_checkpoint = [this] {
      std::error_code error;
      const fs::directory_iterator files(file("run/checkpoints"), error);
      return std::any_of(begin(files), end(files), [](const fs::directory_entry& entry) {
        return entry.path().extension() == ".safetensors";
      });
    };
    while (!has_checkpoint()) {
      if (std::chrono::steady_clock::now() > deadline) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const rlim_t now = address_space_of(process);
    const rlimit limit{.rlim_cur = now, .rlim_max = now};
    EXPECT_EQ(prlimit(process, RLIMIT_AS, &limit, nullptr), 0);
  };
  const ProgramResult result = rubato(
      "train --model mlp --engine libtorch --trace trace.csv --on-trace-end hold --minibatch 8 "
      "--reduce sharded --threads 2 --epochs 1 --checkpoint-every 1steps --out run --cores 40 "
      "--straggler core=39,factor=2000",
      take_the_rest);
  EXPECT_EQ(result.code, kExitCode) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("rubato train: "), HasSubstr("could not be allocated"),
                                HasSubstr("; to continue: rubato train --resume run"),
                                Not(HasSubstr("frame #"))));

  succeeds("train --resume run --checkpoint-every never --straggler core=39,factor=1");
  EXPECT_EQ(summary("run")["epochs"], 1);
}

}  // namespace
}  // namespace rubato
