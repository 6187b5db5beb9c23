#include "verify_run.hpp"

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <rubato/loop/verify.hpp>

#include "clients/app/line/output.hpp"
#include "clients/app/train/run_messages.hpp"
#include "runs/config/values/trace_source.hpp"
#include "runs/run/workload/run_steps.hpp"

namespace rubato::app {

ExitCode verify(const TrainArguments& arguments, const LoadWorkload& load) {
  const RunConfiguration& options = arguments.run;
  const std::shared_ptr<const Workload> workload = load(options);
  if (const std::string slow = workload->warning(); !slow.empty()) {
    print_error(fmt::format("rubato verify: {}\n", slow));
  }
  const RunSteps steps_of_run = load_run_steps(options);
  const TrainOptions asked = train_options(options);
  Verification verification(
      [&](const auto& change) {
        TrainOptions changed = asked;
        change(changed);
        return make_trainer(*workload, options,
                            make_step_source(options, steps_of_run, workload->gradient_bytes()),
                            changed);
      },
      arguments.steps);
  print_text(kernel_words());
  const bool wide = output_width().columns >= LineWidth::kProse;
  if (wide) {
    print_out(fmt::format("{:<22} {:>5} {:>7}  {:<14} {}\n", "trained with", "cores", "threads",
                          "reducer", "hash of weights and metrics"));
  }
  int differences = 0;
  std::int64_t steps = 0;
  const std::vector<Way> ways = ways_to_train(asked, arguments.steps);
  for (const Way& way : ways) {
    if (wide) {
      print_out(
          fmt::format("{:<22} {:>5} {:>7}  {:<14} ", way.what, way.cores, way.threads, way.reduce));
    } else {
      print_text(fmt::format("{}: {} cores, {} threads, {}\n", way.what, way.cores, way.threads,
                             way.reduce));
      print_out("  ");
    }
    // A closed pipe ends the program here: nobody would read the remaining lines.
    require_output();
    try {
      const WayOutcome outcome = verification.train(way);
      print_out(
          fmt::format("{}{}\n", outcome.hash.substr(0, 16), outcome.difference ? "  DIFFERS" : ""));
      if (outcome.difference) {
        print_text(fmt::format("  {}\n", *outcome.difference));
        ++differences;
      }
      if (steps == 0) steps = outcome.steps;
    } catch (const Diverged& diverged) {
      print_out("\n");
      print_error(fmt::format("rubato verify: {}\n{}\n", diverged.what(), diverged.advice()));
      return ExitCode::diverged;
    }
  }
  if (differences > 0) {
    print_text(fmt::format("{} of {} ways gave other bits than the first in {} steps\n",
                           differences, ways.size(), steps));
    return ExitCode::differs;
  }
  print_text(fmt::format("{} steps, {} ways: the same bits\n", steps, ways.size()));
  return ExitCode::good;
}

}  // namespace rubato::app
