#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/parse.hpp>

#include "base/core/tables/text_table.hpp"
#include "clients/app/line/grouped.hpp"
#include "plan_output.hpp"
#include "runs/config/values/trace_source.hpp"

namespace rubato::app {

namespace {

// Formats 12 as "12th".
std::string ordinal(std::int64_t value) {
  const bool teen = value % 100 / 10 == 1;
  const std::int64_t last = value % 10;
  const char* const suffix = !teen && last == 1   ? "st"
                             : !teen && last == 2 ? "nd"
                             : !teen && last == 3 ? "rd"
                                                  : "th";
  return grouped(value) + suffix;
}

std::string count_of(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", grouped(count), what, count == 1 ? "" : "s");
}

// The numbers of a row, for one epoch or for all of them.
struct Totals {
  std::vector<std::int64_t> batch_sizes;
  std::int64_t samples = 0;
  std::int64_t dropped = 0;
  std::int64_t busy_substeps = 0;
  std::int64_t all_substeps = 0;

  void add(const StepPlan& step) {
    batch_sizes.push_back(step.batch_size);
    busy_substeps += step.minibatches;
    all_substeps += step.cores * ((step.minibatches + step.cores - 1) / step.cores);
  }
};

std::vector<std::string> row_of(std::string name, std::span<const EpochPlan> epochs,
                                Totals totals) {
  std::vector<std::int64_t>& sizes = totals.batch_sizes;
  std::sort(sizes.begin(), sizes.end());
  // An epoch that lies within one step has no step of its own.
  if (sizes.empty())
    return {std::move(name),         "", "0", "", "", "", grouped(totals.samples),
            grouped(totals.dropped), ""};
  const double utilisation =
      static_cast<double>(totals.busy_substeps) / static_cast<double>(totals.all_substeps);
  return {std::move(name),
          fmt::format("{}-{}", epochs.front().first_step().value() + 1,
                      epochs.back().end_step().value()),
          grouped(static_cast<std::int64_t>(sizes.size())),
          grouped(sizes.front()),
          grouped(sizes[(sizes.size() - 1) / 2]),
          grouped(sizes.back()),
          grouped(totals.samples),
          grouped(totals.dropped),
          fmt::format("{:.1f} %", 100 * utilisation)};
}

void put_epochs(std::string& text, const PlanOptions& plan, std::span<const EpochPlan> epochs,
                LineWidth width) {
  const std::vector<std::string> header{"epoch", "range",   "steps",   "min batch",  "median",
                                        "max",   "samples", "dropped", "utilisation"};
  TextTable table(std::vector(header.size(), Column::right));
  table.add(header);
  Totals all;
  for (const EpochPlan& epoch : epochs) {
    Totals totals;
    for (const StepPlan& step : epoch.steps) {
      totals.add(step);
      all.add(step);
    }
    totals.samples = samples_of(epoch, plan);
    all.samples += totals.samples;
    totals.dropped = plan.dataset_size - totals.samples;
    all.dropped += totals.dropped;
    table.add(row_of(fmt::format("{}{}", epoch.complete ? "" : "*", epoch.index.value() + 1),
                     std::span(&epoch, 1), std::move(totals)));
  }
  if (epochs.size() > 1) table.add(row_of("all", epochs, std::move(all)));
  text += '\n' + table.text(width);
  if (!epochs.back().complete) text += "* the trace stops before this epoch is full\n";
}

std::string duration(const Planner& planner) {
  const Trace& trace = planner.trace();
  const TraceExtent extent = extent_of(planner);
  std::string text = fmt::format("The trace lasts {}", count_of(extent.epochs, "epoch"));
  if (extent.further_steps > 0) {
    text += fmt::format(" and {} ({}) of the {}", count_of(extent.further_steps, "further step"),
                        count_of(extent.further_samples, "sample"), ordinal(extent.epochs + 1));
  }
  text += fmt::format("; {}", count_of(trace.length(), "step"));
  if (trace.end() == TraceEnd::hold) text += "; then it holds its last step";
  if (trace.end() == TraceEnd::cycle) text += "; then it begins again";
  return text + ".\n";
}

std::string cores_text(const Planner& planner) {
  const CoreRange cores = cores_of(planner.trace(), planner.options().cores);
  return cores.fewest == cores.most
             ? count_of(cores.most, "core")
             : fmt::format("{} to {} cores", grouped(cores.fewest), grouped(cores.most));
}

}  // namespace

std::string plan_table(const Planner& planner, std::span<const EpochPlan> epochs,
                       const PlanView& view, LineWidth width) {
  const PlanOptions& plan = planner.options();
  const Trace& trace = planner.trace();
  std::string text = fmt::format("trace  {}\n", trace.source());
  if (!trace.scaling().empty()) text += fmt::format("scale  {}\n", trace.scaling());
  text += fmt::format("data   {} in minibatches of {}, on {}, {}\n",
                      count_of(plan.dataset_size, "sample"), grouped(plan.minibatch_size),
                      cores_text(planner), choice_name(kAssignments, view.assignment));
  if (!epochs.empty()) put_epochs(text, plan, epochs, width);
  const bool constant = trace.length() == 1 && trace.endless();
  text += '\n';
  text += constant ? "The trace never ends.\n" : duration(planner);
  return text;
}

}  // namespace rubato::app
