#include "calibrate_run.hpp"

#include <fmt/format.h>

#include <rubato/runs/calibration.hpp>

#include "clients/app/line/output.hpp"
#include "clients/app/train/run_messages.hpp"

namespace rubato::app {

ExitCode calibrate(const TrainArguments& arguments, const LoadWorkload& load) {
  const RunConfiguration& run = arguments.run;
  const std::shared_ptr<const Workload> workload = load(run);
  // All but the result goes to stderr, so that stdout can be the value of --cluster.
  if (const std::string slow = workload->warning(); !slow.empty()) {
    print_error(fmt::format("rubato calibrate: {}\n", slow));
  }
  const Calibration found = rubato::calibrate(*workload, run);
  print_error(
      fmt::format("{}, minibatch {}, one thread: medians of {} steps, half of them within "
                  "{:.1f} %{}\n",
                  run.model.text(), run.minibatch, found.steps, 100 * found.spread,
                  arguments.factor == 1 ? "" : fmt::format("; times {}", arguments.factor)));
  print_out(fmt::format("substep={:.4g},update={:.4g},bytes={}\n",
                        arguments.factor * found.substep_seconds,
                        arguments.factor * found.update_seconds, found.gradient_bytes));
  return ExitCode::good;
}

}  // namespace rubato::app
