#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace rubato {

struct Strategy;  // base/spec.hpp

/// The test metrics besides the loss.
struct TestMetrics {
  /// Asked for by name; accuracy is measured anyway if targets are classes.
  bool accuracy = false;
  /// The k of the top-k accuracy; 0 to leave it out.
  std::int64_t top_k = 0;
  bool mse = false;
  bool perplexity = false;
  bool bits_per_byte = false;

  friend bool operator==(const TestMetrics&, const TestMetrics&) = default;
};

/// Parses "mse", "top-k:k=5" and the like, joined by '+'; empty text is none. Throws Error for
/// other text.
[[nodiscard]] TestMetrics parse_test_metrics(std::string_view text);

/// All test metrics, with their arguments.
[[nodiscard]] std::vector<Strategy> test_metrics();

}  // namespace rubato
