#include "app/run_record.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/core/error.hpp>

#include "app/config_file.hpp"

namespace rubato::app {

namespace {

constexpr std::string_view kConfig = "run.config";
constexpr std::string_view kSeconds = "run.wall_seconds";

// What decides no bit of the result, or only how far it goes.
constexpr std::array<std::string_view, 16> kMayChange{
    "epochs",       "threads",          "cores", "assignment",     "reduce", "exact",
    "on-trace-end", "checkpoint-every", "keep",  "fault",          "faults", "straggler",
    "log-steps",    "log-minibatches",  "top-k", "target-accuracy"};
// Their contents are compared, by the trainer, and not where they lie: all of the data, and the
// rows of the trace that steps have used.
constexpr std::array<std::string_view, 2> kByContent{"data", "trace"};

template <std::size_t N>
bool holds(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::map<std::string, std::string> values_of(const std::string& config, std::string_view source) {
  std::map<std::string, std::string> values;
  for (const ConfigEntry& entry : parse_config(config, std::string(source))) {
    values[entry.key] = entry.value;
  }
  return values;
}

void require_same(std::map<std::string, std::string> before, std::map<std::string, std::string> now,
                  bool by_content) {
  std::vector<std::string> differences;
  const auto compare = [&](const std::string& name) {
    if (holds(kMayChange, name) || before[name] == now[name]) return;
    if (by_content && holds(kByContent, name)) return;
    const auto shown = [](const std::string& value) { return value.empty() ? "not set" : value; };
    differences.push_back(
        fmt::format("--{} was {}, is {}", name, shown(before[name]), shown(now[name])));
  };
  std::set<std::string> names;
  for (const auto& values : {before, now}) {
    for (const auto& [name, value] : values) names.insert(name);
  }
  for (const std::string& name : names) compare(name);
  if (differences.empty()) return;
  throw Error(fmt::format("the run was trained with other options: {}\nmay be changed: --{}{}",
                          fmt::join(differences, ", "), fmt::join(kMayChange, ", --"),
                          by_content ? ", and rows of the trace that no step has used" : ""));
}

}  // namespace

void RunRecord::save(State& state) const {
  state.put_text(kConfig, config_);
  state.put(kSeconds, wall_seconds());
}

void RunRecord::load(const Training& training, const State& state) {
  static_cast<void>(training);
  seconds_before_ = state.value<double>(kSeconds);
}

void require_same_options(const State& checkpoint, const std::string& config) {
  require_same(values_of(checkpoint.text(kConfig), "the checkpoint's configuration"),
               values_of(config, "the configuration"), true);
}

void require_same_options(const std::string& before, const std::string& config) {
  require_same(values_of(before, "the run's configuration"), values_of(config, "the configuration"),
               false);
}

}  // namespace rubato::app
