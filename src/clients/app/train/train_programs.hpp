#pragma once

#include <span>
#include <string_view>

#include <rubato/runs/workload.hpp>

#include "clients/app/line/exit_code.hpp"
#include "train_arguments.hpp"

namespace rubato::app {

/// A command that computes a workload, in this program or in the one that loads libtorch.
struct TrainProgram {
  std::string_view name;
  TrainCommand command;
  ExitCode (*execute)(const TrainArguments& arguments, const LoadWorkload& load);
};

/// All such commands.
[[nodiscard]] std::span<const TrainProgram> train_programs();
/// The command of that name; null if there is none.
[[nodiscard]] const TrainProgram* train_program_of(std::string_view name);

}  // namespace rubato::app
