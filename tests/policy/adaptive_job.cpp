// Trains on Fashion-MNIST with batch sizes decided on the way, and a checkpoint after every few
// steps; goes on from the one that there is. The test kills it.
//
// adaptive_job DATA POLICY FOLDER CORES THREADS KILLED_AFTER
//
// It kills itself after so many steps; 0 is never. FOLDER/outcome is what it has come to.

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <limits>
#include <utility>
#include <vector>

#include <rubato/base/parse.hpp>
#include <rubato/base/state.hpp>
#include <rubato/loop/eigen.hpp>
#include <rubato/loop/images.hpp>
#include <rubato/testing.hpp>

#include "policy/adaptive.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;

class Checkpoints final : public Observer {
 public:
  Checkpoints(fs::path file, std::int64_t killed_after)
      : file_(std::move(file)), killed_after_(killed_after) {}
  void between_steps(Training& training) override {
    const std::int64_t steps = training.result().steps;
    if (steps == killed_after_) static_cast<void>(std::raise(SIGKILL));
    if (steps % test::kStepsOfACheckpoint == 0) write_state(file_, training.state());
  }

 private:
  fs::path file_;
  std::int64_t killed_after_;
};

struct AdaptiveJob {
  fs::path data;
  const char* policy;
  fs::path folder;
  std::int64_t cores;
  std::int64_t threads;
  std::int64_t killed_after;
};

void train(const AdaptiveJob& job) {
  constexpr std::int64_t kReference = 64;
  const TrainTestImages images = read_idx_folder(job.data);
  const PixelStatistics statistics = pixel_statistics(images.train);
  const auto rows = [&](const ImageSet& set) { return to_rows<float>(set, statistics); };
  TrainOptions options = test::adaptive_options(kReference);
  options.cores = job.cores;
  options.threads = static_cast<int>(job.threads);
  Trainer trainer(
      multi_layer_perceptron(rows(images.train), {.hidden = {24}, .test = rows(images.test)}),
      test::adaptive_source(job.policy, kReference), options);
  const fs::path checkpoint = job.folder / "checkpoint";
  if (fs::exists(checkpoint)) trainer.load_state(read_state(checkpoint));
  trainer.add_observer<Checkpoints>(checkpoint, job.killed_after);
  const auto recorder = trainer.add_observer<test::Recorder>();
  const TrainResult result = trainer.fit();
  std::vector<std::int64_t> batches;
  for (const StepRecord& step : recorder->steps) batches.push_back(step.plan.batch_size);
  State outcome;
  outcome.put_text("weights", sha256_of(trainer.parameters()));
  outcome.put("accuracy", *result.final_test->accuracy);
  outcome.put("steps", result.steps);
  outcome.put("seconds", result.time ? result.time->seconds : 0.0);
  outcome.put("last_batches", batches);
  write_state(job.folder / "outcome", outcome);
}

}  // namespace
}  // namespace rubato

int main(int count, char** arguments) {
  const auto whole = [&](int i) {
    return rubato::parse_whole(arguments[i], 0, std::numeric_limits<int>::max());
  };
  try {
    if (count != 7) return 2;
    rubato::train({.data = arguments[1],
                   .policy = arguments[2],
                   .folder = arguments[3],
                   .cores = whole(4),
                   .threads = whole(5),
                   .killed_after = whole(6)});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "adaptive_job: %s\n", error.what());
    return 1;
  }
}
