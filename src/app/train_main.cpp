// rubato-train: what `rubato train` becomes once its options are checked.

#include <string>
#include <vector>

#include "app/command_line.hpp"
#include "app/train_options.hpp"
#include "app/train_run.hpp"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return rubato::app::run_reporting_errors("rubato train", [&] {
    const auto options = rubato::app::parse_train_options(arguments);
    return options ? static_cast<int>(rubato::app::train(*options)) : 0;
  });
}
