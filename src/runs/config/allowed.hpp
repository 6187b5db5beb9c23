#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <rubato/runs/run_configuration.hpp>

#include "runs/config/values/trace_source.hpp"

// Checks whether a run is allowed, in stages: each is made as soon as its facts are known, so that
// errors are found before anything takes time.
//
//   values   the options alone: a value by the table, as it is set; several together by
//   machine  the files and the CPU that they ask for       require_consistent(), which asks both
//   data     what the samples and targets are              require_data()
//   trace    which steps there are, of how many samples    require_availability(),
//                                                          require_steps()
//
// Every failed check throws an Error that names the option and says what would be accepted.

namespace rubato {

class StepSource;  // steps/step_source.hpp

/// Throws Error for an option such as "loss" or "loss nll": "--loss nll: WHY; accepted: ACCEPTED".
[[noreturn]] void refuse(std::string_view option, std::string_view why, std::string_view accepted);

/// Facts about the data, for require_data().
struct KnownData {
  bool has_test = false;
  /// The number of classes; 0 if targets are real numbers.
  std::int64_t classes = 0;
  /// True if real targets are the probabilities of classes.
  bool probabilities = false;
  /// The number of dimensions of a sample's inputs, and the number of its targets.
  std::size_t dimensions = 0;
  std::int64_t targets = 1;
  /// Whether a sample has one class or one row of real numbers, as built-in models need.
  bool has_one_target = true;
  /// Whether inputs are token ids; `vocabulary` is their upper bound if each has a class, else 0.
  bool has_tokens = false;
  std::int64_t vocabulary = 0;
  /// A description such as "of 1 x 28 x 28 in 10 classes".
  std::string description{};
};

/// Throws Error where the data are not what the model and other options need.
void require_data(const RunConfiguration& run, const KnownData& data);

/// The part of require_data() for a program's own data sets whose targets are real numbers.
void require_loss_of_numbers(const RunConfiguration& run);

/// Throws Error for an --availability that would have no effect on such steps.
void require_availability(const RunConfiguration& run, const RunSteps& loaded);

/// Facts about the steps, for require_steps().
struct KnownSteps {
  const RunSteps& steps;
  /// Samples in the training set; empty as long as they are not known.
  std::optional<std::int64_t> samples;
  /// Makes the source of the steps, which throws Error for steps that cannot be taken in modelled
  /// time.
  std::function<std::unique_ptr<StepSource>()> source;
};

/// Throws Error for batches that are larger than an epoch, for epochs that a trace does not hold,
/// and if devices run out in the first 100,000 steps and that is to be an error: all that training
/// itself would find out late. The decisions of a policy (--batch) cannot be known in advance.
void require_steps(const RunConfiguration& run, const KnownSteps& known);

}  // namespace rubato
