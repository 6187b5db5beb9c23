#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include <rubato/runs/run_configuration.hpp>

namespace rubato {

/// Something by which two trainings differ, with its text in either: an option, or a fact about
/// what computed them.
struct NamedDifference {
  std::string name{};
  std::array<std::string, 2> texts{};
};

/// The options that differ, of those on which the trained weights depend: without --exact, also
/// those that say who computes what. Files are compared by their content. The text of an option
/// that is not set is "not set".
[[nodiscard]] std::vector<NamedDifference> differing_options(const RunConfiguration& a,
                                                             const RunConfiguration& b);

/// The kernels, the CPU and the versions that differ, by the summaries of two runs; none if one has
/// no summary, because it has not ended.
[[nodiscard]] std::vector<NamedDifference> differing_facts(const std::filesystem::path& a,
                                                           const std::filesystem::path& b);

}  // namespace rubato
