#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace rubato {

/// The outcome of comparing a cell with another over the seeds: with the best of its condition, or
/// with its baseline.
enum class Verdict { best, better, tied, worse, untested, baseline, lost };

struct VerdictRow {
  Verdict value;
  /// The word for it, in printed tables and in files.
  std::string_view name;
  std::string_view help;
};

inline constexpr std::array<VerdictRow, 7> kVerdicts{
    {{Verdict::best, "best", "the best mean of its condition"},
     {Verdict::better, "better", "better than the other, with a p-value (Holm) of at most 5 %"},
     {Verdict::tied, "tied", "the seeds do not tell it from the other: the p-value is above 5 %"},
     {Verdict::worse, "worse", "worse than the other, with a p-value (Holm) of at most 5 %"},
     {Verdict::untested, "untested", "there is one seed, and so no test"},
     {Verdict::baseline, "baseline", "the baseline itself"},
     {Verdict::lost, "lost",
      "it has no mean: a run diverged, ran out of devices, failed or is missing"}}};

[[nodiscard]] constexpr std::string_view name_of(Verdict verdict) {
  return std::ranges::find(kVerdicts, verdict, &VerdictRow::value)->name;
}

}  // namespace rubato
