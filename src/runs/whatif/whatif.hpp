#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/workload.hpp>

#include "recorded_training.hpp"
#include "run_events.hpp"
#include "runs/run/run_request.hpp"

namespace rubato {

/// A question about a run.
struct WhatIfRequest {
  std::filesystem::path run{};
  /// The configuration of the run, and the threads to use.
  RunConfiguration configuration{};
  /// Sets other options, which then hold from the first event on; empty for none.
  std::function<void(RunConfiguration& run)> change{};
  /// The names of these options, for people: "rule root, lr 0.1".
  std::string changes{};
  /// The value of --without: "3,7", "@41", "preemptions" or "all-changes". Empty for each event
  /// alone and all together.
  std::string without{};
  LearningTarget target{};
  /// The number of other orders of the samples with which each fork is trained again.
  std::int64_t seeds = 0;
  /// The most events that are left out alone; without a number, as many as can be trained within
  /// about kMinutes.
  std::optional<std::int64_t> most{};

  static constexpr double kMinutes = 10;
};

/// A training that was not.
struct Counterfactual {
  /// Positions of the events that it is without.
  std::vector<std::size_t> events{};
  /// "without event 3", "without preemptions", "with rule root".
  std::string name{};
  /// The steps that it shares with the run.
  std::int64_t steps = 0;
  /// True if it has the batches of the run, and therefore the same bits: it need not be trained.
  bool same_bits = false;
  TrainingOutcome outcome{};
  /// With --seeds: its outcome with another order of samples, and that of the run with the same
  /// order from the same step on.
  struct OtherOrder {
    std::uint64_t seed = 0;
    TrainingOutcome outcome{};
    TrainingOutcome run{};
  };
  std::vector<OtherOrder> others{};
};

/// The cost of answering a WhatIfRequest.
struct WhatIfPlan {
  std::int64_t counterfactuals = 0;
  /// The number of them whose bits are those of the run.
  std::int64_t same_bits = 0;
  /// Forks to train, and those that an interrupted command has trained already.
  std::int64_t forks = 0;
  std::int64_t trained = 0;
  /// Steps of all forks to train, and of the run, which is repeated between their first steps.
  std::int64_t steps = 0;
  std::int64_t repeated = 0;
  double seconds = 0;
  /// Events that are not left out alone, because they are the smallest.
  std::int64_t events_skipped = 0;
};

/// The progress of a plan.
struct WhatIfProgress {
  /// The fork in training, 1 to WhatIfPlan::forks; 0 while steps of the run are repeated.
  std::int64_t fork = 0;
  std::string name{};
  std::int64_t step = 0;
  /// The share of the plan that is done, from 0 to 1, by its estimate.
  double share = 0;
};

struct WhatIfResult {
  std::vector<RunEvent> events{};
  TrainingOutcome run{};
  bool has_test = false;
  LearningTarget target{};
  WhatIfPlan plan{};
  /// Each event alone, in their order; then those together.
  std::vector<Counterfactual> counterfactuals{};

  /// The counterfactuals without one event alone.
  [[nodiscard]] std::vector<const Counterfactual*> singles() const;
  /// The one without all of those events, if there are several.
  [[nodiscard]] const Counterfactual* together() const;
};

/// The events of the run. Trains nothing. Throws Error as what_if() does.
[[nodiscard]] std::vector<RunEvent> events_of_run(const WhatIfRequest& request);

struct WhatIfParts {
  LoadWorkload load;
  Report report;
  /// Called before anything is trained.
  std::function<void(const WhatIfPlan& plan)> on_plan{};
  /// Called after each step; an exception ends the command, which then continues when it is called
  /// again.
  std::function<void(const WhatIfProgress& progress)> on_step{};
};

/// Trains the run without its events, as forks at the step before each, with all threads and one
/// after the other. The steps before an event are those of the run: they are repeated once, for all
/// forks, and compared with its digests.
///
/// Keeps the result of each fork in RUN/whatif, from which it continues, and writes the answer to
/// RUN/whatif/whatif.json. Throws Error if the run has no such events, if it has not ended or
/// cannot be repeated, and as state_after() does.
[[nodiscard]] WhatIfResult what_if(const WhatIfRequest& request, const WhatIfParts& parts);

/// An effect of what a counterfactual leaves out: a number of the run less that of the
/// counterfactual. Empty if one of them has no such number.
struct Effect {
  std::optional<double> loss{};
  std::optional<double> accuracy{};
  std::optional<double> target_samples{};
  std::optional<double> hours{};
  std::optional<double> money{};
  std::optional<double> lost_seconds{};
  double substeps = 0;
};
[[nodiscard]] Effect effect_of(const TrainingOutcome& run, const TrainingOutcome& without,
                               const LearningTarget& target);

/// The JSON of RUN/whatif/whatif.json.
[[nodiscard]] JsonForm<WhatIfResult> whatif_form();

/// The file with the answer in the folder of a run.
[[nodiscard]] std::filesystem::path whatif_file(const std::filesystem::path& run);

}  // namespace rubato
