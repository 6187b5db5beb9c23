#include "app/run_record.hpp"

#include <string_view>

#include <rubato/config/configuration_file.hpp>

namespace rubato::app {

namespace {

constexpr std::string_view kConfig = "run.config";
constexpr std::string_view kSeconds = "run.wall_seconds";

}  // namespace

void RunRecord::save(State& state) const {
  state.put_text(kConfig, config_);
  state.put(kSeconds, wall_seconds());
}

void RunRecord::load(const Training& training, const State& state) {
  static_cast<void>(training);
  seconds_before_ = state.value<double>(kSeconds);
}

RunConfiguration configuration_in(const State& checkpoint) {
  return parse_configuration(checkpoint.text(kConfig), "the checkpoint's configuration");
}

}  // namespace rubato::app
