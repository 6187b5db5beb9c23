#include "app/verify_run.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/report/weights.hpp>
#include <rubato/state/sha256.hpp>
#include <rubato/state/state_file.hpp>

#include "app/kernel_choice.hpp"
#include "app/output.hpp"
#include "app/trace_option.hpp"
#include "app/training.hpp"

namespace rubato::app {

namespace {

// A way to train that must not matter.
struct Way {
  std::string what;
  std::int64_t cores = 1;
  int threads = 1;
  std::string reduce = "tree";
  Assignment assignment = Assignment::contiguous;
  // The probability that a core dies in a step.
  double fault_rate = 0;
  // After so many steps the state goes to another trainer; 0 is never.
  std::int64_t resume_after = 0;
  // In turns, what a model keeps where nobody sees it shows every time.
  Dealing dealing = Dealing::by_thread;
};

// The digest of something at a step.
struct Mark {
  std::string what;
  Sha256::Digest digest{};

  friend bool operator==(const Mark&, const Mark&) = default;
};

Sha256::Digest digest_of(const at::Tensor& tensor) {
  const at::Tensor values = tensor.detach().contiguous();
  Sha256 sha;
  sha.add(values.data_ptr(), values.nbytes());
  return sha.digest();
}

Sha256::Digest digest_of(double number) {
  Sha256 sha;
  sha.add(&number, sizeof number);
  return sha.digest();
}

// Of every step, all that it reported and changed.
using Marks = std::vector<std::vector<Mark>>;

std::string hash_of(const Marks& marks) {
  Sha256 sha;
  for (const auto& step : marks) {
    for (const Mark& mark : step) sha.add(mark.digest.data(), mark.digest.size());
  }
  return sha.hex();
}

// Takes a digest of all that training reports and changes, step by step, and ends it after some.
class Witness final : public Observer {
 public:
  Witness(std::int64_t last_step, std::int64_t pause_after)
      : last_step_(last_step), pause_after_(pause_after) {}

  void on_step(Training& training, const StepRecord& step) override {
    std::vector<Mark> marks;
    const auto mark = [&](const char* what, const std::optional<double>& number) {
      if (number) marks.push_back({.what = what, .digest = digest_of(*number)});
    };
    mark("the loss", step.loss);
    mark("the learning rate", step.learning_rate);
    mark("the gain", step.gain);
    mark("the gradient norm", step.gradient_norm);
    mark("the noise scale", step.noise_scale);
    for (const auto* tensors : {&training.parameters(), &training.buffers()}) {
      for (const NamedTensor& named : *tensors) {
        marks.push_back({.what = named.name, .digest = digest_of(named.tensor)});
      }
    }
    marks_.push_back(std::move(marks));
    const auto done = static_cast<std::int64_t>(marks_.size());
    if (done == last_step_ || done == pause_after_) training.pause();
  }
  void on_epoch(Training& training, const EpochRecord& epoch) override {
    static_cast<void>(training);
    std::vector<Mark>& marks = marks_.back();
    marks.push_back(
        {.what = "the training loss of the epoch", .digest = digest_of(epoch.train_loss)});
    marks.push_back({.what = "the test loss", .digest = digest_of(epoch.test->loss)});
  }

  [[nodiscard]] const Marks& marks() const { return marks_; }

 private:
  Marks marks_;
  std::int64_t last_step_;
  std::int64_t pause_after_;
};

std::vector<Way> ways_of(const TrainCommandOptions& options) {
  const auto threads = static_cast<int>(options.threads);
  const std::int64_t cores = options.elasticity.cores;
  const std::int64_t half = options.steps / 2;
  return {
      {.what = "one thread, one core"},
      {.what = "as asked for",
       .cores = cores,
       .threads = threads,
       .reduce = options.reduce,
       .assignment = options.elasticity.assignment},
      {.what = "more threads", .cores = cores, .threads = 2 * threads, .reduce = options.reduce},
      {.what = "another reducer", .cores = cores, .threads = threads, .reduce = "chunked-tree"},
      {.what = "another reducer", .cores = cores, .threads = threads, .reduce = "sharded"},
      {.what = "three cores", .cores = 3, .threads = threads},
      {.what = "many cores", .cores = 64, .threads = threads},
      {.what = "strided", .cores = cores, .threads = threads, .assignment = Assignment::strided},
      {.what = "replicas in turns",
       .cores = 3,
       .threads = 3,
       .assignment = Assignment::strided,
       .dealing = Dealing::in_turns},
      {.what = "cores that die", .cores = cores, .threads = threads, .fault_rate = 0.1},
      {.what = "a resume", .cores = cores, .threads = threads, .resume_after = half},
      {.what = "a resume of 5 cores",
       .cores = 5,
       .threads = 1,
       .reduce = "sharded",
       .resume_after = half},
  };
}

TrainCommandOptions with(TrainCommandOptions options, const Way& way) {
  options.elasticity.cores = way.cores;
  options.elasticity.assignment = way.assignment;
  options.threads = way.threads;
  options.reduce = way.reduce;
  if (way.fault_rate > 0) options.faults = fmt::format("rate={}", way.fault_rate);
  return options;
}

Marks train(const TrainCommandOptions& options, const TrainingData& data, const Trace& trace,
            const Way& way) {
  const TrainCommandOptions own = with(options, way);
  const auto witness = std::make_shared<Witness>(options.steps, way.resume_after);
  std::optional<State> state;
  // What goes on after a resume has the options that were asked for.
  for (const TrainCommandOptions* part : {&own, &options}) {
    Trainer trainer =
        make_trainer(*part, data, trace, part == &own ? way.dealing : Dealing::by_thread);
    trainer.add_observer(witness);
    if (state) trainer.load_state(*state);
    trainer.fit();
    if (way.resume_after == 0 || state) break;
    // Through the bytes of a file.
    state = parse_state(state_bytes(trainer.state()), "the state");
  }
  return witness->marks();
}

void print_difference(const Marks& expected, const Marks& found) {
  const std::size_t steps = std::min(expected.size(), found.size());
  for (std::size_t step = 0; step < steps; ++step) {
    const auto& marks = expected[step];
    const auto& others = found[step];
    for (std::size_t i = 0; i < std::min(marks.size(), others.size()); ++i) {
      if (marks[i] == others[i]) continue;
      print_out(fmt::format("  differs first after step {} in {}\n", step + 1, marks[i].what));
      return;
    }
  }
  print_out(fmt::format("  trained {} steps, not {}\n", found.size(), expected.size()));
}

}  // namespace

ExitCode verify(const TrainCommandOptions& options) {
  warn_of_slow_blas("rubato verify");
  const TrainingData data = load_training_data(options);
  const Trace trace = load_trace(options.elasticity.trace, options.elasticity.on_trace_end);
  print_kernels();
  print_out(fmt::format("{:<22} {:>5} {:>7}  {:<14} {}\n", "trained with", "cores", "threads",
                        "reducer", "hash of weights and metrics"));
  std::optional<Marks> expected;
  int differences = 0;
  const std::vector<Way> ways = ways_of(options);
  for (const Way& way : ways) {
    print_out(
        fmt::format("{:<22} {:>5} {:>7}  {:<14} ", way.what, way.cores, way.threads, way.reduce));
    // Nobody waits for the rest.
    require_output();
    Marks marks;
    try {
      marks = train(options, data, trace, way);
    } catch (const Diverged& diverged) {
      print_out("\n");
      print_error(
          fmt::format("rubato verify: {}\ntry a lower --lr or another --rule\n", diverged.what()));
      return ExitCode::diverged;
    }
    if (marks.empty()) throw Error("the trace has no step to train");
    const bool same = !expected || *expected == marks;
    print_out(fmt::format("{}{}\n", hash_of(marks).substr(0, 16), same ? "" : "  DIFFERS"));
    if (!same) {
      print_difference(*expected, marks);
      ++differences;
    }
    if (!expected) expected = std::move(marks);
  }
  if (differences > 0) {
    print_out(fmt::format("{} of {} ways came to other bits than the first in {} steps\n",
                          differences, ways.size(), expected->size()));
    return ExitCode::differs;
  }
  print_out(fmt::format("{} steps, {} ways: the same bits\n", expected->size(), ways.size()));
  return ExitCode::good;
}

}  // namespace rubato::app
