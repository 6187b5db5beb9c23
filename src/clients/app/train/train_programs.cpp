#include "train_programs.hpp"

#include <algorithm>
#include <array>

#include "clients/app/calibrate/calibrate_run.hpp"
#include "clients/app/verify/verify_run.hpp"
#include "train_run.hpp"

namespace rubato::app {

std::span<const TrainProgram> train_programs() {
  static constexpr std::array<TrainProgram, 3> kPrograms{
      {{"train", TrainCommand::train, train},
       {"verify", TrainCommand::verify, verify},
       {"calibrate", TrainCommand::calibrate, calibrate}}};
  return kPrograms;
}

const TrainProgram* train_program_of(std::string_view name) {
  const auto programs = train_programs();
  const auto found = std::ranges::find(programs, name, &TrainProgram::name);
  return found == programs.end() ? nullptr : &*found;
}

}  // namespace rubato::app
