#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <rubato/runs/run_configuration.hpp>

#include "array_difference.hpp"
#include "option_difference.hpp"
#include "runs/config/diff_stage.hpp"
#include "runs/run/fork.hpp"

namespace rubato {

/// One of two trainings that are compared: a run in a folder, or a configuration alone.
struct DiffSide {
  /// The name for people.
  std::string name{};
  /// The folder; empty if there is none.
  std::filesystem::path run{};
  /// configuration_of_run(), or what was asked for.
  RunConfiguration configuration{};
};

struct DiffRequest {
  std::array<DiffSide, 2> sides{};
  /// The most steps in which configurations without folders are compared.
  std::int64_t steps = 24;
  /// The number of steps after the first different one in which the distance is measured; 0 for
  /// none.
  std::int64_t distance = 100;
  /// True if the distance of two seeds is measured, too.
  bool seeds = false;
  /// The threads that repeat steps, and the kernels, which are those of this process.
  std::int64_t threads = hardware_threads();
  Kernels kernels = Kernels::native;
};

/// The first difference of two trainings.
struct FirstDifference {
  DiffStage stage = DiffStage::start;
  /// The step, counted from 1; 0 if they differ before the first.
  std::int64_t step = 0;
  /// A sentence or two for people.
  std::string what{};
  /// The minibatch, counted from 1 in the step.
  std::optional<std::int64_t> minibatch{};
  /// The position in the minibatch, counted from 1, and the index of the sample there in either.
  std::optional<std::int64_t> position{};
  std::array<std::int64_t, 2> samples{};
  /// Numbers that differ, if the difference is one of two numbers: losses, rates, batches.
  std::optional<std::array<double, 2>> numbers{};
  std::optional<DifferentElement> element{};
  /// The names of the differing options that can be the reason.
  std::vector<std::string> options{};
};

/// The distance of two trainings after a step: the norm of the difference of their parameters.
struct DistancePoint {
  /// Counted from the first different step, which is 1.
  std::int64_t steps = 0;
  double between = 0;
  /// The distance that two seeds have after as many steps.
  std::optional<double> seeds{};
};

/// Counts the equal steps of two trainings by how they were compared.
struct ComparedSteps {
  /// The first steps, which both have from the same run.
  std::int64_t shared = 0;
  /// The steps after them whose recorded digests are equal.
  std::int64_t digests = 0;
  /// The steps that were repeated in both, with equal digests.
  std::int64_t repeated = 0;
  /// True if both have ended after these steps, with equal weights.
  bool weights = false;
};

struct RunsDifference {
  std::vector<NamedDifference> options{};
  std::vector<NamedDifference> facts{};
  /// The number of steps, from the beginning, after which both have the same state.
  std::int64_t equal_steps = 0;
  ComparedSteps compared{};
  /// Empty if there is none.
  std::optional<FirstDifference> first{};
  std::vector<DistancePoint> distances{};
  /// The steps in which the distance doubles while it grows; empty if it does not.
  std::optional<double> doubling{};
  std::optional<double> doubling_of_seeds{};
};

/// Finds where two trainings part: by their recorded digests, and by repeating the steps between
/// those that say it. Throws Error if something cannot be read or repeated.
[[nodiscard]] RunsDifference find_difference(const DiffRequest& request, const ReplayParts& parts);

/// The steps in which `values`, distances after `steps`, double: by least squares of their
/// logarithms until they first reach half of the largest. Empty if there are less than two of them,
/// or if they do not grow.
[[nodiscard]] std::optional<double> doubling_steps(std::span<const std::int64_t> steps,
                                                   std::span<const double> values);

}  // namespace rubato
