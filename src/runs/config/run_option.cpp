// This file turns the rows of run_options.def into the table of options (docs/adr/0024). It
// includes them with RUBATO_OPTION defined as a call of OptionTable::add(), which binds a row to
// its member by a pointer to member and to its reading (readings.hpp). The member's type decides
// whether text becomes a Parsed value, and whether the option can be unset. The constants,
// functions for paths and predicates at the beginning are those that the rows refer to.

#include "run_option.hpp"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/base/machine.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/loop/gradient_transform.hpp>
#include <rubato/loop/intervals.hpp>
#include <rubato/loop/libtorch_options.hpp>
#include <rubato/loop/model_options.hpp>
#include <rubato/loop/reducer.hpp>
#include <rubato/loop/test_metrics.hpp>
#include <rubato/numbers/rule.hpp>
#include <rubato/steps/availability.hpp>
#include <rubato/steps/batch_policies.hpp>
#include <rubato/steps/cluster_model.hpp>
#include <rubato/steps/market_policy.hpp>
#include <rubato/steps/random.hpp>

#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "chosen_parts.hpp"
#include "loop/optim/make_optimizer.hpp"
#include "loop/train/step/step_part.hpp"
#include "plugin.hpp"
#include "readings.hpp"
#include "runs/config/values/data_source.hpp"
#include "runs/config/values/fork_point.hpp"
#include "runs/config/values/loss_choice.hpp"
#include "runs/config/values/model_choice.hpp"
#include "runs/config/values/trace_source.hpp"

namespace rubato {

namespace {

constexpr std::int64_t kMaxThreads = 4096;
constexpr std::int64_t kMaxEpochs = 1'000'000;
constexpr std::int64_t kMaxSteps = 1'000'000'000;
constexpr std::int64_t kMaxSamples = std::int64_t{1} << 53;
constexpr std::int64_t kMaxKept = 1'000'000;
constexpr std::int64_t kMaxTopK = 1'000'000;
constexpr RealRange kAlphas{0, 1, false, true, "a number above 0 and up to 1"};

std::vector<std::string> cluster_argument_names() {
  return vector_of(cluster_arguments(), &Argument::name);
}

std::string built_in_metric_names() {
  std::string names;
  for (const WatchedMetric& metric : built_in_metrics()) names += metric.name() + "|";
  return names;
}

std::vector<std::string> market_policy_names() {
  return vector_of(market_policies(), &Strategy::name);
}

std::string map_script_path(const std::string& text, const PathMap& map) {
  const auto file = script_file(text);
  return file ? script_text(map(*file)) : text;
}

std::string map_whole_path(const std::string& text, const PathMap& map) {
  // Empty text means that the option is not set.
  return text.empty() ? text : map(text).string();
}

// The conditions of Idle::when.

constexpr std::string_view kNoModelledTime = "there is no modelled time";
constexpr std::string_view kModelledTime = "with --clock virtual";

bool needs_no_data(const RunConfiguration& run) {
  return !run.model->classifies;
}
bool has_constant_trace(const RunConfiguration& run) {
  return run.trace->kind == TraceChoice::Kind::constant;
}
bool is_in_real_time(const RunConfiguration& run) {
  return run.clock == Clock::real;
}
bool counts_nothing(const RunConfiguration& run) {
  return std::ranges::all_of(run.schedule->names(), [](std::string_view name) {
    return name == "constant" || name == "plateau";
  });
}
bool has_no_momentum(const RunConfiguration& run) {
  return !facts_of(run.optimizer->method).usual_momentum;
}
// Groups of parameters matter to weight decay, to AdaScale, which has a gain for each, and to
// layer-wise rates, which leave some out.
bool has_no_groups(const RunConfiguration& run) {
  return run.weight_decay == 0 && !facts_of(run.optimizer->method).layer_wise &&
         std::ranges::none_of(
             run.rule->names(),
             [](std::string_view rule) { return rule == "lbsgd" || rule == "adascale"; }) &&
         !run.log_noise;
}
bool has_no_lookahead(const RunConfiguration& run) {
  return run.lookahead == 0;
}
bool has_no_decay(const RunConfiguration& run) {
  return run.weight_decay == 0;
}
bool watches_nothing(const RunConfiguration& run) {
  return run.patience == 0 && !run.keep_best && !(*run.schedule)->watches();
}
bool never_stops_early(const RunConfiguration& run) {
  return run.patience == 0;
}
bool writes_no_checkpoints(const RunConfiguration& run) {
  return !run.checkpoint_every->has_value();
}
bool monitors_nothing(const RunConfiguration& run) {
  return run.monitor.empty();
}
bool is_without_tensorboard(const RunConfiguration& run) {
  return !run.tensorboard;
}
bool has_no_histograms(const RunConfiguration& run) {
  return run.histograms.empty();
}

// True if a member holds a value.
template <class Member>
bool is_set(const Member& member) {
  if constexpr (requires { member.has_value(); }) return member.has_value();
  if constexpr (requires { member.empty(); }) return !member.empty();
  return true;
}

// Reads a member's value: its type parses the text or, if it cannot, the row's reading does.
template <class Member, class Reading>
Member parsed([[maybe_unused]] const Reading& reading, const std::string& text,
              [[maybe_unused]] const Extensions& extensions) {
  if constexpr (requires { Member(text, extensions); }) {
    return Member(text, extensions);
  } else {
    return reading.read(text);
  }
}

// Collects the rows, and binds each to its member.
class OptionTable {
 public:
  void group(const char* heading) { heading_ = heading; }

  template <class Member, class Reading>
  void add(Member RunConfiguration::*member, const Reading& reading, RunOption row) {
    row.group = heading_;
    row.kind = Reading::kKind;
    row.is_parsed = requires {
      Member(std::string(), Extensions());
    };
    row.accepted = reading.accepted();
    if (row.value.empty()) row.value = reading.value();
    row.set = [member, reading, accepted = row.value](RunConfiguration& configuration,
                                                      const std::string& text) {
      Member value = parsed<Member>(reading, text, configuration.extensions);
      // Empty text would be lost in a configuration file: a missing option has its default.
      if (!is_set(value) && is_set(RunConfiguration().*member)) {
        throw_error("is empty; accepted: {}", accepted);
      }
      configuration.*member = std::move(value);
    };
    row.text = [member,
                reading](const RunConfiguration& configuration) -> std::optional<std::string> {
      const Member& value = configuration.*member;
      if (!is_set(value)) return std::nullopt;
      if constexpr (requires { value.has_value(); }) {
        return reading.write(*value);
      } else {
        return reading.write(value);
      }
    };
    row.reset = [member](RunConfiguration& configuration) {
      configuration.*member = RunConfiguration().*member;
    };
    rows_.push_back(std::move(row));
  }

  [[nodiscard]] std::vector<RunOption> rows() && { return std::move(rows_); }

 private:
  std::string heading_;
  std::vector<RunOption> rows_;
};

std::vector<RunOption> all_options() {
  using namespace reading;
  OptionTable table;
#define RUBATO_OPTION_GROUP(heading) table.group(heading);
#define RUBATO_OPTION(type, member, fallback, how, ...) \
  table.add(&RunConfiguration::member, how, {__VA_ARGS__});
#include <rubato/runs/run_options.def>
  return std::move(table).rows();
}

}  // namespace

bool names_file(const RunOption& option, const std::string& text) {
  bool named = false;
  if (option.map_path != nullptr) {
    static_cast<void>(option.map_path(text, [&named](const std::filesystem::path& file) {
      named = true;
      return file;
    }));
  }
  return named;
}

std::optional<std::string> bound_text(const RunOption& option,
                                      const RunConfiguration& configuration) {
  auto text = option.text(configuration);
  if (!text || option.resume != OnResume::by_hash) return text;
  return option.map_path(*text, [](const std::filesystem::path&) { return "file"; });
}

std::string change_in_words(const RunOption& option, const RunConfiguration& before,
                            const RunConfiguration& now) {
  return fmt::format("--{} was {}, is {}", option.name, option.text(before).value_or("not set"),
                     option.text(now).value_or("not set"));
}

std::optional<std::string> default_text(const RunOption& option) {
  return option.text(RunConfiguration());
}

// Every configuration that is made asks, and an answer takes a fifth of a millisecond.
std::int64_t hardware_threads() {
  static const int usable = cpus().usable();
  return usable;
}

std::span<const RunOption> run_options() {
  static const std::vector<RunOption> options = all_options();
  return options;
}

std::vector<const RunOption*> run_options(Commands commands) {
  const auto options = run_options();
  return pointers_to(options,
                     [&](const RunOption& option) { return meet(option.commands, commands); });
}

std::string why_idle(const RunOption& option, const RunConfiguration& run) {
  const Idle& idle = option.idle;
  if (idle.when == nullptr || !idle.when(run)) return {};
  const std::string of = idle.of.empty() ? "" : run_option(idle.of).text(run).value_or("");
  return fmt::format("{}; accepted: {}", fmt::format(fmt::runtime(idle.why), of), idle.accepted);
}

void require_none_idle(const GivenOptions& given, const RunConfiguration& run) {
  for (const RunOption& option : run_options()) {
    if (!given.contains(option.name)) continue;
    const std::string why = why_idle(option, run);
    if (!why.empty()) throw_error("--{}: {}", option.name, why);
  }
}

const RunOption& run_option(std::string_view name) {
  std::vector<std::string_view> names;
  for (const RunOption& option : run_options()) {
    if (option.name == name) return option;
    names.push_back(option.name);
  }
  throw Error(unknown_name_message("option", name, names, false));
}

}  // namespace rubato
