#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace rubato {

/// What is measured on a test set besides the loss.
struct TestMetrics {
  /// Where targets are classes it is measured in any case; whether it was asked for.
  bool accuracy = false;
  /// Of so many outputs; 0 is none.
  std::int64_t top_k = 0;
  bool mse = false;
  bool perplexity = false;

  friend bool operator==(const TestMetrics&, const TestMetrics&) = default;
};

/// From "mse", "top-k:k=5" and the like, several with '+' between them; empty text is none. Throws
/// Error for what there is not.
[[nodiscard]] TestMetrics parse_test_metrics(std::string_view text);

struct Strategy;  // core/family.hpp
/// All of them, with their arguments.
[[nodiscard]] std::vector<Strategy> test_metrics();

}  // namespace rubato
