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

// Whether a run is allowed, in stages: each is asked as soon as what it goes by is known, so that
// what is wrong is wrong before anything takes time.
//
//   values   the options alone: a value by the table, as it is set; several together by
//   machine  the files and the CPU that they ask for       require_consistent(), which asks both
//   data     what the samples and targets are              require_data()
//   trace    which steps there are, of how many samples    require_availability(),
//                                                          require_steps()
//
// Every answer is an Error that names the option and says what would be accepted.

namespace rubato {

class StepSource;  // steps/step_source.hpp

/// Throws Error for an option, "loss" or "loss nll": "--loss nll: WHY; accepted: ACCEPTED".
[[noreturn]] void refuse(std::string_view option, std::string_view why, std::string_view accepted);

/// What the second stage goes by.
struct KnownData {
  bool has_test = false;
  /// 0 where targets are real numbers.
  std::int64_t classes = 0;
  /// Of a sample: how many dimensions its inputs have, and how many targets there are.
  std::size_t dimensions = 0;
  std::int64_t targets = 1;
  /// Whether a sample has one class or one row of real numbers, as built-in models take it.
  bool has_one_target = true;
  /// Whether inputs are token ids, and below which number where each has a class.
  bool has_tokens = false;
  std::int64_t vocabulary = 0;
  /// "of 1 x 28 x 28 in 10 classes".
  std::string description{};
};

/// Throws Error where the data are not what the model and other options need.
void require_data(const RunConfiguration& run, const KnownData& data);

/// The part of it that data sets of a program's own need whose targets are real numbers.
void require_loss_of_numbers(const RunConfiguration& run);

/// Throws Error for an --availability that would do nothing with such steps.
void require_availability(const RunConfiguration& run, const RunSteps& loaded);

/// What the third stage goes by.
struct KnownSteps {
  const RunSteps& steps;
  /// Of the training set; empty as long as nobody knows.
  std::optional<std::int64_t> samples;
  /// Makes the source of the steps, which refuses itself what cannot be taken in modelled time.
  std::function<std::unique_ptr<StepSource>()> source;
};

/// Throws Error for batches that are larger than an epoch, for epochs that a trace does not hold,
/// and where devices go before training has come to its end and that is to be an error: what
/// training itself would find out late. Of what a policy decides (--batch) nobody knows before.
void require_steps(const RunConfiguration& run, const KnownSteps& known);

}  // namespace rubato
