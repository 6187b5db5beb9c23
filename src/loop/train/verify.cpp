// A Witness reduces each execution of a training to marks: for every step, the digests of the
// numbers that were reported and of the arrays. Marks are small, so those of the first are kept and
// all others are compared with them; the first mark that differs gives step and name for the
// message. All marks of an execution also go into one hash (ExecutionOutcome::hash), which can be
// compared between machines. An execution with a resume saves the state of a first trainer as the
// bytes of a file, loads it into a second one, and lets the same witness observe both.

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/machine.hpp>
#include <rubato/base/state.hpp>
#include <rubato/loop/verify.hpp>

#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "base/state/sha256.hpp"

namespace rubato {

std::vector<Execution> executions_to_compare(const TrainOptions& asked, std::int64_t steps) {
  const int threads = asked.threads > 0 ? asked.threads : cpus().usable();
  const std::int64_t cores = asked.cores;
  const std::int64_t half = steps / 2;
  const std::string reduce = asked.own_reducer ? std::string() : asked.reduce;
  std::vector<Execution> executions{
      {.what = "one thread, one core"},
      {.what = "as asked for",
       .cores = cores,
       .threads = threads,
       .reduce = reduce,
       .assignment = asked.assignment},
      {.what = "more threads", .cores = cores, .threads = 2 * threads, .reduce = reduce},
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
  };
  // A single step leaves no place for a resume.
  if (half > 0) {
    executions.push_back(
        {.what = "a resume", .cores = cores, .threads = threads, .resume_after = half});
    executions.push_back({.what = "a resume of 5 cores",
                          .cores = 5,
                          .threads = 1,
                          .reduce = "sharded",
                          .resume_after = half});
  }
  return executions;
}

// Takes a digest, step by step, of everything that training reports and changes, and stops or
// pauses it after some steps.
class Verification::Witness final : public Observer {
 public:
  Witness(std::int64_t last_step, std::int64_t pause_after)
      : last_step_(last_step), pause_after_(pause_after) {}

  void on_step(Training& training, const StepRecord& step) override {
    std::vector<Mark>& marks = marks_.emplace_back();
    put(marks, "the loss", step.loss);
    put(marks, "the learning rate", step.learning_rate);
    put(marks, "the gain", step.gain);
    put(marks, "the gradient norm", step.gradient_norm);
    put(marks, "the noise scale", step.noise_scale);
    for (const NamedNumber& input : step.decision_inputs) {
      put(marks, "the inputs of the source's decision", input.value);
    }
    for (const auto* arrays : {&training.parameters(), &training.buffers()}) {
      for (const NamedArray& array : *arrays) {
        marks.push_back({.what = array.name, .digest = digest_of(array.bytes())});
      }
    }
    // The digest has the arrays above, too, so it is compared last: it alone differs if only the
    // optimizer's memory does.
    if (step.digest) marks.push_back({.what = "the optimizer's state", .digest = *step.digest});
    const auto done = static_cast<std::int64_t>(marks_.size());
    if (done == last_step_ || done == pause_after_) training.pause();
  }
  void on_epoch(Training& training, const EpochRecord& epoch) override {
    static_cast<void>(training);
    std::vector<Mark>& marks = marks_.back();
    put(marks, "the training loss of the epoch", epoch.train_loss);
    if (!epoch.test) return;
    put(marks, "the test loss", epoch.test->loss);
    put(marks, "the test accuracy", epoch.test->accuracy);
  }

  [[nodiscard]] const Marks& marks() const { return marks_; }

 private:
  static void put(std::vector<Mark>& marks, const char* what, const std::optional<double>& number) {
    if (!number) return;
    marks.push_back({.what = what, .digest = digest_of(std::as_bytes(std::span(&*number, 1)))});
  }

  Marks marks_;
  std::int64_t last_step_;
  std::int64_t pause_after_;
};

Verification::Verification(MakeTrainer make, std::int64_t steps)
    : make_(std::move(make)), steps_(steps) {
  if (!make_) throw Error("nothing makes the trainers to compare; accepted: a function that does");
  if (steps < 1) throw_error("{} steps to compare: at least 1 is needed", steps);
}

ExecutionOutcome Verification::train(const Execution& execution) {
  Marks marks = marks_of(execution);
  if (marks.empty()) throw Error("the trace has no step to train");
  Sha256 sha;
  for (const auto& step : marks) {
    for (const Mark& mark : step) sha.add(mark.digest.to_text());
  }
  ExecutionOutcome outcome{
      .execution = execution, .hash = sha.hex(), .steps = static_cast<std::int64_t>(marks.size())};
  if (!expected_) {
    expected_ = std::move(marks);
  } else if (marks != *expected_) {
    outcome.difference = difference_of(*expected_, marks);
  }
  return outcome;
}

Verification::Marks Verification::marks_of(const Execution& execution) const {
  const auto witness = std::make_shared<Witness>(steps_, execution.resume_after);
  const auto as_the_execution_says = [&execution](TrainOptions& options) {
    options.cores = execution.cores;
    options.threads = execution.threads;
    if (!execution.reduce.empty()) {
      options.reduce = execution.reduce;
      options.own_reducer = {};
    }
    options.assignment = execution.assignment;
    options.dealing = execution.dealing;
    options.digest_every = 1;
    if (execution.fault_rate > 0) options.faults.rate = execution.fault_rate;
  };
  Trainer first = make_(as_the_execution_says);
  first.add_observer(witness);
  first.fit();
  if (execution.resume_after > 0) {
    // The second trainer continues with the options that the user asked for.
    Trainer second = make_([](TrainOptions& options) { options.digest_every = 1; });
    second.add_observer(witness);
    second.load_state(parse_state(state_bytes(first.state()), "the state"));
    second.fit();
  }
  return witness->marks();
}

std::string Verification::difference_of(const Marks& expected, const Marks& found) {
  const std::size_t steps = std::min(expected.size(), found.size());
  for (std::size_t step = 0; step < steps; ++step) {
    const auto& marks = expected[step];
    const auto& others = found[step];
    for (std::size_t i = 0; i < std::min(marks.size(), others.size()); ++i) {
      if (marks[i] == others[i]) continue;
      return fmt::format("differs first after step {} in {}", step + 1, marks[i].what);
    }
    if (marks.size() != others.size()) {
      return fmt::format("differs first after step {} in what is reported", step + 1);
    }
  }
  return fmt::format("trained {} steps, not {}", found.size(), expected.size());
}

std::vector<ExecutionOutcome> verify(const MakeTrainer& make, const TrainOptions& asked,
                                     std::int64_t steps) {
  Verification verification(make, steps);
  return vector_of(executions_to_compare(asked, steps),
                   [&](const Execution& execution) { return verification.train(execution); });
}

}  // namespace rubato
