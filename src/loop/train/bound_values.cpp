// Values are compared as texts: a state has a line for each, and changes_of() compares the lines of
// a saved state with the values of this training. A name that only one of them has is empty in the
// other, so a value that is added later must be empty by default, or name an older value that
// changes whenever it does (BoundValue::before). A resume allows no change. A fork allows those
// whose value says so (OnFork), and what such a change would confuse begins anew.

#include "bound_values.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "base/state/sha256.hpp"
#include "loop/train/step/step_part.hpp"

namespace rubato {

namespace {

std::string text_of(const ParameterGroup& group) {
  const GroupOptions& o = group.options;
  const auto or_dash = [](const std::optional<double>& value) {
    return value ? fmt::to_string(*value) : std::string("-");
  };
  return fmt::format("{} (rate {} decay {} momentum {} layer-wise {})", group.name,
                     o.learning_rate_factor, or_dash(o.weight_decay), or_dash(o.momentum),
                     o.layer_wise);
}

std::string text_of(const std::vector<ParameterGroup>& groups) {
  const auto texts = vector_of(groups, [](const ParameterGroup& group) { return text_of(group); });
  return fmt::to_string(fmt::join(texts, ", "));
}

std::string trained_by(const Objective& objective, const std::vector<ParameterGroup>& groups) {
  std::string text;
  for (const TrainedArray& trained : objective.trained()) {
    // A function decides which group takes it; functions cannot be compared, but their answers can.
    const auto taker = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& group) { return group.takes(trained.array); });
    text += fmt::format("{} {} {} {}\n", trained.array.name, name_of(trained.array.type),
                        fmt::join(trained.array.shape, "x"), taker - groups.begin());
  }
  return text;
}

// The values of the training as a whole.
std::vector<BoundValue> values_of(const TrainOptions& options, const Objective& objective) {
  const OwnReducer& reducer = options.own_reducer;
  Budget rest = options.budget;
  rest.iterations.reset();
  return {{"minibatch_size", fmt::to_string(options.minibatch_size)},
          {"remainder", std::string(choice_name(kRemainders, options.remainder))},
          {"groups", text_of(options.groups)},
          {"iterations",
           options.budget.iterations ? fmt::to_string(*options.budget.iterations) : "none",
           OnFork::free},
          {"budget", to_text(rest), OnFork::free},
          {"seed", fmt::to_string(options.seed), OnFork::free},
          {"sampler", options.sampler ? options.sampler.name : "", OnFork::free},
          {"reducer", reducer && !reducer.reproducible ? reducer.name : "", OnFork::free},
          {"log_noise", fmt::format("{}", options.log_noise), OnFork::free},
          {"training samples", fmt::to_string(objective.samples())},
          {"parameters", Sha256::hex_of(trained_by(objective, options.groups))}};
}

std::map<std::string, std::string, std::less<>> lines_of(const std::string& text) {
  std::map<std::string, std::string, std::less<>> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const std::size_t equals = line.find(" = ");
    if (equals != std::string::npos) lines[line.substr(0, equals)] = line.substr(equals + 3);
  }
  return lines;
}

}  // namespace

// A value that differs from that of a state.
struct BoundValues::Change {
  std::string name;
  std::string was;
  std::string is{};
  // Null if this training knows no value of the name.
  const BoundValue* value = nullptr;
};

BoundValues::BoundValues(const TrainOptions& options, const Objective& objective)
    : values_(values_of(options, objective)) {
  const auto add = [this](std::vector<BoundValue> values) {
    std::ranges::move(values, std::back_inserter(values_));
  };
  for (const StepPart& part : step_parts()) {
    if (part.bound != nullptr) add(part.bound(options));
  }
  add(objective.bound_values());
}

std::string BoundValues::text() const {
  std::string text;
  for (const BoundValue& value : values_) {
    if (value.value.empty()) continue;
    fmt::format_to(std::back_inserter(text), "{} = {}\n", value.name, value.value);
  }
  return text;
}

std::vector<BoundValues::Change> BoundValues::changes_of(const std::string& saved) const {
  std::map<std::string, std::string, std::less<>> lines = lines_of(saved);
  std::vector<Change> changes;
  const auto has_changed = [&](std::string_view name) {
    return std::ranges::find(changes, name, &Change::name) != changes.end();
  };
  for (const BoundValue& value : values_) {
    const auto line = lines.find(value.name);
    const std::string was = line == lines.end() ? "" : line->second;
    if (line != lines.end()) lines.erase(line);
    const bool differs =
        was.empty() && !value.before.empty() ? has_changed(value.before) : was != value.value;
    if (differs) {
      changes.push_back(
          {.name = std::string(value.name), .was = was, .is = value.value, .value = &value});
    }
  }
  for (const auto& [name, was] : lines) {
    if (!was.empty()) changes.push_back({.name = name, .was = was});
  }
  std::ranges::sort(changes, {}, &Change::name);
  return changes;
}

std::string BoundValues::text_of(const std::vector<Change>& changes) {
  const auto in_words = [](const std::string& text) { return text.empty() ? "nothing" : text; };
  std::vector<std::string> texts;
  for (const Change& change : changes) {
    // The values before it say the same.
    if (change.value != nullptr && !change.value->before.empty()) continue;
    texts.push_back(
        fmt::format("{} was {}, is {}", change.name, in_words(change.was), in_words(change.is)));
  }
  return fmt::to_string(fmt::join(texts, "; "));
}

void BoundValues::require_same(const std::string& saved) const {
  const std::vector<Change> changes = changes_of(saved);
  if (changes.empty()) return;
  throw_error(
      "the state belongs to another configuration: {}\nmay be changed: threads, cores, assignment, "
      "a reproducible reducer, more epochs, rows of the trace that no step has used",
      text_of(changes));
}

std::set<std::string_view> BoundValues::forgotten(const std::string& saved) const {
  std::vector<Change> changes = changes_of(saved);
  std::set<std::string_view> memories;
  for (const Change& change : changes) {
    if (change.value != nullptr && change.value->on_fork == OnFork::anew) {
      memories.insert(change.value->memory);
    }
  }
  std::erase_if(changes, [](const Change& change) {
    return change.value != nullptr && change.value->on_fork != OnFork::refused;
  });
  if (changes.empty()) return memories;
  std::set<std::string_view> free;
  for (const BoundValue& value : values_) {
    if (value.on_fork != OnFork::refused && value.before.empty()) free.insert(value.name);
  }
  throw_error("a fork cannot continue from the state: {}\nmay be changed: {}", text_of(changes),
              fmt::join(free, ", "));
}

}  // namespace rubato
