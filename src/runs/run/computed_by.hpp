#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rubato/loop/observer.hpp>
#include <rubato/runs/records.hpp>
#include <rubato/runs/run_configuration.hpp>

namespace rubato {

/// The kernels and versions that computed steps of a run, by their names in summary.json:
/// "kernels.cpu", "versions.rubato".
using ComputedBy = std::map<std::string, std::string>;

/// Returns what computes in this process; `wanted` are the kernels that were asked for.
[[nodiscard]] ComputedBy computed_by(const EngineFacts& engine, Kernels wanted);

/// Returns what computed a step of the run in a folder, counted from 1, as far as the folder tells.
/// The summary tells of the last process that trained it. A checkpoint tells less, but of its own
/// process: if the one that was written next after the step names other kernels or another
/// libtorch, it is believed. Empty if neither can be read.
[[nodiscard]] ComputedBy computed_by(const std::filesystem::path& run, std::int64_t step);

/// Something by which two trainings differ, with its text in either: an option, or a fact about
/// what computed them.
struct NamedDifference {
  std::string name{};
  std::array<std::string, 2> texts{};
};

/// The facts that both have, and that differ.
[[nodiscard]] std::vector<NamedDifference> differing_facts(const ComputedBy& a,
                                                           const ComputedBy& b);

/// The kernels that the run of a checkpoint computed with.
class KernelRecord final : public Observer {
 public:
  /// `kernels` are those in use: kernels_text(). `libtorch` is its version; empty if it computes
  /// nothing.
  explicit KernelRecord(std::string kernels, std::string libtorch = {})
      : kernels_(std::move(kernels)), libtorch_(std::move(libtorch)) {}

  [[nodiscard]] std::string_view name() const override { return kName; }
  void visit_state(StateVisitor& state, const Training& training) override;

  /// A line for the user if the run continues with other kernels or another libtorch than before;
  /// otherwise empty.
  [[nodiscard]] const std::string& difference() const { return difference_; }

  static constexpr std::string_view kName = "kernels";
  /// The texts in its state: both arguments of the constructor.
  static constexpr std::string_view kInUse = "in_use";
  static constexpr std::string_view kLibtorch = "libtorch";

 private:
  std::string kernels_;
  std::string libtorch_;
  std::string difference_;
};

}  // namespace rubato
