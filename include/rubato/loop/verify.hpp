#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <rubato/base/digest.hpp>
#include <rubato/loop/trainer.hpp>

namespace rubato {

/// How a training is executed, which must not change a bit of the result.
struct Execution {
  /// A description for people.
  std::string what;
  std::int64_t cores = 1;
  int threads = 1;
  /// Replaces TrainOptions::reduce; if empty, the option stays as it is, which may mean a user's
  /// own reducer.
  std::string reduce = "tree";
  Assignment assignment = Assignment::contiguous;
  /// The probability that a core dies in a step.
  double fault_rate = 0;
  /// The number of steps after which another trainer takes over the state, through the bytes of a
  /// file; 0 for never.
  std::int64_t resume_after = 0;
  /// Dealing::in_turns reveals hidden state of an objective every time.
  Dealing dealing = Dealing::by_thread;
};

/// Executions of `steps` steps: first on one thread and one core, for comparison, then with other
/// threads, cores, reducers and assignments, with cores that die, and, for at least two steps, with
/// resumes.
[[nodiscard]] std::vector<Execution> executions_to_compare(const TrainOptions& asked,
                                                           std::int64_t steps);

/// The result of one execution.
struct ExecutionOutcome {
  Execution execution;
  /// SHA-256 of everything that training reported and changed, step by step.
  std::string hash;
  std::int64_t steps = 0;
  /// The first difference to the first execution, as a message ("differs first after step 3 in
  /// conv1.weight"); empty if there is none.
  std::optional<std::string> difference{};
};

/// Makes the user's trainer, after `change` has changed its options:
///
///     [=](const auto& change) {
///       rubato::TrainOptions mine = options;
///       change(mine);
///       return rubato::TorchTrainer(rubato::model_factory<Net>(), loss, data, trace, mine);
///     }
using MakeTrainer = std::function<Trainer(const std::function<void(TrainOptions&)>& change)>;

/// Trains the same in one execution after the other and compares, after each step, all parameters,
/// all buffers, everything that is reported, and the digest (StepRecord::digest), which has what
/// the optimizer remembers, too.
class Verification {
 public:
  /// Trains the first `steps` steps, at least 1. Throws Error for fewer, and for an empty `make`.
  Verification(MakeTrainer make, std::int64_t steps);

  /// Throws whatever training throws, and Error if there is no step to train.
  [[nodiscard]] ExecutionOutcome train(const Execution& execution);

 private:
  // The digest of something at a step.
  struct Mark {
    std::string what;
    Digest digest{};

    friend bool operator==(const Mark&, const Mark&) = default;
  };
  // The marks of every step.
  using Marks = std::vector<std::vector<Mark>>;
  class Witness;

  [[nodiscard]] Marks marks_of(const Execution& execution) const;
  [[nodiscard]] static std::string difference_of(const Marks& expected, const Marks& found);

  MakeTrainer make_;
  std::int64_t steps_;
  std::optional<Marks> expected_;
};

/// Trains in all executions_to_compare() and compares them: the counterpart of `rubato verify` for
/// a user's own objective. `asked` are the options that `make` begins with. The results are the
/// same bits if no outcome has a difference.
[[nodiscard]] std::vector<ExecutionOutcome> verify(const MakeTrainer& make,
                                                   const TrainOptions& asked,
                                                   std::int64_t steps = 24);

}  // namespace rubato
