// Pages stay small, however many steps and runs there are.

#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "runs/page/html.hpp"
#include "runs/page/page.hpp"
#include "runs/page/thinned_run.hpp"
#include "runs/report/timeline.hpp"
#include "support/temp_folder.hpp"

namespace rubato::page {
namespace {

constexpr std::size_t kMostBytes = 5'000'000;
// As D3 has.
const std::string kLibrary(250'000, ' ');

// As much as a run can report.
ThinnedRun long_run(const std::string& name, std::size_t columns, int steps) {
  ThinnedRun run(name, columns);
  run.has_clock = true;
  run.configuration = std::string(2000, '#');
  run.summary = {{"weights_sha256", std::string(64, 'f')}, {"stopped", nullptr}};
  for (int step = 1; step <= steps; ++step) {
    run.last[Axis::steps] = step;
    for (const Axis axis : {Axis::samples, Axis::seconds, Axis::hours, Axis::money}) {
      run.last[axis] += 1.234567 * step;
    }
    run.steps.begin_step(run.last);
    int number = 0;
    for (const char* key : {"batch", "cores", "lr", "gain", "loss", "gradient_norm", "noise_scale",
                            "measured_gain", "loss_scale", "seconds.wall", "decision.target"}) {
      run.steps.add(key, std::sin(step + ++number));
    }
    if (step % 10 == 0) run.add_mark({kRestart, step, "on 8 cores, before on 16", run.last});
    run.substeps.add({step % 3, 1, 2, 3});
  }
  return run;
}

// Of a step with more spans than a chart has room for, on 40 threads and as many cores.
std::vector<Json> figures_of_a_large_step() {
  RecordedTimeline timeline;
  timeline.spans.resize(40);
  Span::Moment at{};
  for (int i = 0; i < 10'000; ++i) {
    const int thread = i % 40;
    Span span{
        .minibatch = MinibatchIndex{1'000'000 + i}, .core = CoreRank{thread}, .thread = thread};
    span.begin = at;
    at += std::chrono::nanoseconds(12'345);
    span.end = at;
    timeline.spans[static_cast<std::size_t>(thread)].push_back(span);
    timeline.meetings.push_back({.meeting = {.first = CoreRank{thread},
                                             .left = span.begin,
                                             .second = CoreRank{(thread + 1) % 40},
                                             .taken = span.end}});
  }
  const test::TempFolder folder;
  return step_figures(folder.write("timeline.json", timeline_json(timeline)));
}

TEST(PageSize, IsBoundedForAMillionSteps) {
  constexpr int kSteps = 1'000'000;
  std::vector<ThinnedRun> runs{long_run("one", columns_of(1), kSteps)};
  runs.front().step_figures = figures_of_a_large_step();
  ASSERT_EQ(runs.front().step_figures.size(), 2U);
  const std::string html = to_html(document_of_runs(runs), kLibrary);
  EXPECT_LT(html.size(), kMostBytes / 4);
  EXPECT_GT(runs[0].steps.buckets().size(), columns_of(1) / 2 - 1);
}

TEST(PageSize, IsBoundedForAsManyRunsAsAPageTakes) {
  std::vector<ThinnedRun> runs;
  for (std::size_t i = 0; i < kMostRuns; ++i) {
    runs.push_back(long_run(fmt::format("experiments/2024/runs/spot-most-16_adascale_seed-{}", i),
                            columns_of(kMostRuns), 1000));
  }
  const std::string html = to_html(document_of_runs(runs), kLibrary);
  EXPECT_LT(html.size(), kMostBytes);
}

}  // namespace
}  // namespace rubato::page
