#include <array>

#include <rubato/base/spec.hpp>
#include <rubato/loop/test_metrics.hpp>

#include "base/core/text/text.hpp"

namespace rubato {

namespace {

struct MetricRow {
  std::string_view name;
  std::string_view help;
  void (*read)(Spec& spec, TestMetrics& metrics);
};

constexpr std::int64_t kMostK = 1'000'000;

constexpr std::array<MetricRow, 5> kMetricRows{
    {{"accuracy", "the share of targets that are the largest output; always measured for classes",
      [](Spec&, TestMetrics& metrics) { metrics.accuracy = true; }},
     {"top-k", "the share of targets that are among the k largest outputs; for classes",
      [](Spec& spec, TestMetrics& metrics) { metrics.top_k = spec.whole("k", 5, 1, kMostK); }},
     {"mse", "the mean squared error of the outputs; for real targets",
      [](Spec&, TestMetrics& metrics) { metrics.mse = true; }},
     {"perplexity", "e to the power of the test loss, which must be a cross entropy; for classes",
      [](Spec&, TestMetrics& metrics) { metrics.perplexity = true; }},
     {"bits-per-byte",
      "the test loss, which must be a cross entropy, in bits per byte of text; for text",
      [](Spec&, TestMetrics& metrics) { metrics.bits_per_byte = true; }}}};

}  // namespace

TestMetrics parse_test_metrics(std::string_view text) {
  TestMetrics metrics;
  if (text.empty()) return metrics;
  for (const std::string_view part : split_at(text, '+')) {
    Spec spec(part);
    find_row("metric", spec.name(), kMetricRows).read(spec, metrics);
    spec.finish();
  }
  return metrics;
}

std::vector<Strategy> test_metrics() {
  return strategies_of(kMetricRows, [](const MetricRow& row, Spec& spec) {
    TestMetrics ignored;
    row.read(spec, ignored);
  });
}

}  // namespace rubato
