#include <array>

#include <rubato/steps/trace.hpp>

namespace rubato {

namespace {

struct Run {
  std::int64_t batch_size;
  int steps;
};

// Capacity is acquired step by step while the market is calm and lost at once when it is not: three
// climbs, each ended by a preemption. Below 256 some of 8 cores are idle with minibatches of 32; at
// 288, 352 and 416 they have unequal numbers of substeps. The sum (18,304 samples) is not a
// multiple of the 12,000 samples of the built-in digits, so that every epoch meets another part of
// the trace.
constexpr std::array<Run, 20> kRuns{{
    {32, 2},  {64, 2},  {96, 2},  {128, 3}, {192, 3}, {256, 4}, {352, 3}, {416, 3}, {512, 5},  //
    {160, 2}, {256, 4}, {352, 4},                                                              //
    {64, 3},  {128, 3}, {224, 3}, {320, 4}, {448, 4}, {512, 5}, {288, 4}, {96, 3},
}};

}  // namespace

Trace Trace::elastic() {
  std::vector<TraceStep> steps;
  for (const Run& run : kRuns) {
    steps.insert(steps.end(), static_cast<std::size_t>(run.steps), {run.batch_size, std::nullopt});
  }
  return Trace(std::move(steps), TraceEnd::cycle, "elastic");
}

}  // namespace rubato
