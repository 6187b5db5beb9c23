#include "tensorboard_columns.hpp"

#include <algorithm>
#include <set>

#include <rubato/runs/tensorboard.hpp>

#include "runs/experiment/design/design.hpp"
#include "runs/run/run_description.hpp"
#include "runs/tensorboard/event_folder.hpp"

namespace rubato {

namespace {

template <class Predicate>
bool any_run(const ExperimentPlan& plan, const Predicate& is_so) {
  return std::ranges::any_of(plan.runs,
                             [&](const PlannedRun& run) { return is_so(run.configuration); });
}

}  // namespace

TensorBoardColumns tensorboard_columns(const ExperimentPlan& plan, const std::string& tuned,
                                       const Measure& measure) {
  std::set<std::string> shown;
  for (const PlannedRun& run : plan.runs) {
    for (const Hyperparameter& each : hyperparameters_of(run.configuration)) {
      shown.insert(each.name);
    }
  }
  TensorBoardColumns columns;
  std::vector<std::string> options = plan.columns;
  if (!tuned.empty()) options.push_back(tuned);
  options.emplace_back(kSeedOption);
  for (const std::string& option : options) {
    // Runs do not report options that do not affect results, such as --threads. Erasing the name
    // makes an axis that is tuned as well appear in one column only.
    if (shown.erase(option) == 0) continue;
    columns.hyperparameters.push_back(hyperparameter_column(option));
  }
  if (measure.is_accuracy) columns.metrics.emplace_back("test/accuracy");
  columns.metrics.emplace_back("test/loss");
  if (any_run(plan, [](const auto& run) { return run.clock == Clock::modelled; })) {
    columns.metrics.emplace_back("clock/hours");
  }
  if (any_run(plan, [](const auto& run) { return run.price > 0; })) {
    columns.metrics.emplace_back("clock/money");
  }
  return columns;
}

void write_tensorboard_columns(const ExperimentFolder& folder, const ExperimentPlan& plan,
                               const std::string& tuned, const Measure& measure) {
  if (!any_run(plan, [](const auto& run) { return run.tensorboard; })) return;
  const TensorBoardColumns columns = tensorboard_columns(plan, tuned, measure);
  EventFolder files(folder.runs());
  files.remove_all();
  EventFile file(files.next());
  file.write_experiment(columns.hyperparameters, columns.metrics);
  file.sync();
}

}  // namespace rubato
