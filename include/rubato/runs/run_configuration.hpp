#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/machine.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/loop/intervals.hpp>
#include <rubato/loop/libtorch_options.hpp>
#include <rubato/loop/optimizer.hpp>
#include <rubato/loop/test_metrics.hpp>
#include <rubato/numbers/adjustments.hpp>
#include <rubato/numbers/lr_schedule.hpp>
#include <rubato/numbers/rule.hpp>
#include <rubato/steps/availability.hpp>
#include <rubato/steps/batch_policies.hpp>
#include <rubato/steps/modelled_time.hpp>
#include <rubato/steps/plan.hpp>
#include <rubato/steps/random.hpp>
#include <rubato/steps/step_plan.hpp>
#include <rubato/steps/step_source.hpp>
#include <rubato/steps/trace.hpp>

namespace rubato {

struct OwnDataSource;         // loop/images.hpp
struct OwnGradientTransform;  // loop/gradient_transform.hpp
struct OwnMetric;             // loop/observer.hpp
struct OwnReducer;            // loop/trainer.hpp
struct TrainOptions;          // loop/trainer.hpp

/// The names that options accept besides the built-in ones, and the user's own parts that they
/// stand for. A RunConfiguration has one, by which its texts are read, so that its parts are
/// available to whatever is done with a configuration, and have its run folders, resumes and
/// comparisons:
///
///     rubato::RunConfiguration configuration;
///     configuration.extensions.rules.add(
///         "log2", [](const rubato::RuleInput& step) { return std::log2(1 + step.scale()); });
///     configuration.rule = {"log2", configuration.extensions};
///     rubato::Run run(configuration, rubato::dense_workload(configuration),
///                     rubato::RunLocation::create("runs/first"));
///
/// Run folders and states know a part by its name and arguments alone. The parts of a plug-in
/// (docs/extending.md) are bound by the SHA-256 of its file as well.
struct Extensions {
  Extensions();

  /// Values of --rule.
  RuleRegistry rules{};
  /// Values of --schedule.
  OwnSchedules schedules;
  /// Values of --optimizer. Its settings are arguments of its own: --momentum, --nesterov and
  /// --weight-decay apply to built-in optimizers only.
  Additions<OwnOptimizer> optimizers;
  /// Values of --transform, which are applied one after the other.
  Additions<OwnGradientTransform> transforms;
  /// Values of --sampler.
  OwnSamplers samplers;
  /// Values of --reduce.
  Additions<OwnReducer> reducers;
  /// Values of --metric. Training writes their numbers to metrics.jsonl.
  Additions<OwnMetric> metrics;
  /// Values of --batch.
  OwnBatchPolicies batch_policies;
  /// Values of --data.
  Additions<OwnDataSource> data;

  /// Whether both have the same names.
  friend bool operator==(const Extensions& a, const Extensions& b);
};

/// Every built-in strategy that an option of a run accepts by name, family by family: models,
/// losses, data, samplers, traces, generators and policies of availability, rules, schedules,
/// optimizers, transforms, initializers, precisions, reducers and all-reduce algorithms. Traces and
/// generators share an option, as do reducers and algorithms. The same for the whole life of the
/// process.
[[nodiscard]] std::span<const Family> families();
/// The same, followed by the user's own.
[[nodiscard]] std::vector<Family> families(const Extensions& extensions);

/// The family of that name, or of its singular: "rules", "rule". Throws Error for an unknown one,
/// naming the nearest.
[[nodiscard]] const Family& family(std::string_view name,
                                   std::span<const Family> among = families());

/// The properties that a plug-in and the program that loads it must have in common. The layout of
/// this struct is the same in all versions.
struct PluginAbi {
  /// The version of rubato and a digest of its public headers.
  const char* rubato;
  /// __GXX_ABI_VERSION and _GLIBCXX_USE_CXX11_ABI.
  int compiler;
  int library;
};

/// Defines the entry point of a plug-in, a shared library that is linked with rubato::plugin: a
/// function that adds the plug-in's parts to `extensions`, whose body follows in braces
/// (examples/plugin/your_parts.cpp). It is called once for each configuration that names the
/// plug-in; the message of an exception that it throws is shown to the user.
// NOLINTBEGIN(bugprone-macro-parentheses): the name of a parameter.
#define RUBATO_PLUGIN(extensions)                                                     \
  extern "C" [[gnu::visibility("default")]] ::rubato::PluginAbi rubato_plugin_abi() { \
    return {RUBATO_PLUGIN_ABI, __GXX_ABI_VERSION, _GLIBCXX_USE_CXX11_ABI};            \
  }                                                                                   \
  extern "C" [[gnu::visibility("default")]] void rubato_plugin(::rubato::Extensions& extensions)
// NOLINTEND(bugprone-macro-parentheses)

struct DataSource;          // runs/config/values/data_source.hpp
struct Fault;               // loop/faults.hpp
struct FaultOptions;        // loop/faults.hpp
struct ForkPoint;           // runs/config/values/fork_point.hpp
struct InitializerOptions;  // loop/model_options.hpp
struct LossChoice;          // runs/config/values/model_choice.hpp
struct MetricChoice;        // runs/config/chosen_parts.hpp
struct ModelChoice;         // runs/config/values/model_choice.hpp
struct OptimizerChoice;     // runs/config/chosen_parts.hpp
struct Plugin;              // runs/config/plugin.hpp
struct ReducerChoice;       // runs/config/chosen_parts.hpp
struct Straggler;           // loop/faults.hpp
struct TimelineSteps;       // runs/config/readings.hpp
struct TraceChoice;         // runs/config/values/trace_source.hpp

/// The value of an option together with its text. It is parsed once, when it is made from text, and
/// never changes:
///
///     RunConfiguration run;
///     run.model = "mlp:hidden=64";  // throws Error for an unknown model
///     run.model.text();             // "mlp:hidden=64"
///
/// Copies share the value and are cheap.
template <class T>
class Parsed {
 public:
  /// Parses empty text: the option is not set.
  Parsed() : Parsed(std::string_view()) {}
  /// Throws Error for text that is not accepted, saying what is wrong with it and what would be
  /// accepted.
  template <std::convertible_to<std::string_view> Text>
  Parsed(const Text& text) : Parsed(text, Extensions()) {}
  /// The same with the user's own names.
  template <std::convertible_to<std::string_view> Text>
  Parsed(const Text& text, const Extensions& own)
      : text_(std::string_view(text)), value_(parse(text_, own)) {}

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool empty() const { return text_.empty(); }

  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_.get(); }

  /// Whether their texts are equal.
  friend bool operator==(const Parsed& a, const Parsed& b) { return a.text_ == b.text_; }

 private:
  [[nodiscard]] static std::shared_ptr<const T> parse(const std::string& text,
                                                      const Extensions& own);

  std::string text_;
  std::shared_ptr<const T> value_;
};

// Each specialisation is defined in the source file of the type that it parses.
#define RUBATO_PARSED(...)                                                               \
  template <>                                                                            \
  std::shared_ptr<const __VA_ARGS__> Parsed<__VA_ARGS__>::parse(const std::string& text, \
                                                                const Extensions& own);
RUBATO_PARSED(AvailabilityChoice)
RUBATO_PARSED(BatchChange)
RUBATO_PARSED(BatchPolicyChoice)
RUBATO_PARSED(ClusterModel)
RUBATO_PARSED(DataSource)
RUBATO_PARSED(DevicePrice)
RUBATO_PARSED(DigestInterval)
RUBATO_PARSED(FaultOptions)
RUBATO_PARSED(ForkPoint)
RUBATO_PARSED(InitializerOptions)
RUBATO_PARSED(LossChoice)
RUBATO_PARSED(MemoriesInSamples)
RUBATO_PARSED(MetricChoice)
RUBATO_PARSED(ModelChoice)
RUBATO_PARSED(OptimizerChoice)
RUBATO_PARSED(PrecisionOptions)
RUBATO_PARSED(ReducerChoice)
RUBATO_PARSED(ReplacedOperators)
RUBATO_PARSED(RuleChoice)
RUBATO_PARSED(Sampler)
RUBATO_PARSED(ScheduleChoice)
RUBATO_PARSED(TimelineSteps)
RUBATO_PARSED(TraceChoice)
RUBATO_PARSED(std::shared_ptr<const MarketPolicy>)
RUBATO_PARSED(std::optional<CheckpointInterval>)
RUBATO_PARSED(std::optional<WatchedMetric>)
RUBATO_PARSED(std::vector<AugmentationOptions>)
RUBATO_PARSED(std::vector<Fault>)
RUBATO_PARSED(std::vector<OwnGradientTransform>)
RUBATO_PARSED(std::vector<Plugin>)
RUBATO_PARSED(std::vector<Straggler>)
#undef RUBATO_PARSED

/// Hardware threads that this process may use, given its affinity and its control groups when it
/// first asked; at least 1.
[[nodiscard]] std::int64_t hardware_threads();

/// The library that computes a model.
enum class Engine {
  automatic,  ///< Eigen if it can: it starts at once and is faster then; else libtorch
  eigen,
  libtorch,
};
inline constexpr std::array<Choice<Engine>, 3> kEngines{
    {{Engine::automatic, "auto"}, {Engine::eigen, "eigen"}, {Engine::libtorch, "libtorch"}}};

/// The clock that measures steps.
enum class Clock {
  real,      ///< this machine's
  modelled,  ///< a ClusterModel's
};
inline constexpr std::array<Choice<Clock>, 2> kClocks{
    {{Clock::real, "real"}, {Clock::modelled, "virtual"}}};

/// The test accuracy that a run has to reach.
struct AccuracyTarget {
  /// Greater than 0, at most 100.
  double percent = 100;
  /// Whether any epoch may reach it; otherwise the last one has to.
  bool best = false;

  friend bool operator==(const AccuracyTarget&, const AccuracyTarget&) = default;
};

/// A part of the training set that a run is tested on.
struct HeldOut {
  /// Greater than 0 and less than 1.
  double share = 0;
  /// Seed of the choice of the samples.
  std::uint64_t seed = 0;

  friend bool operator==(const HeldOut&, const HeldOut&) = default;
};

/// The value of RunConfiguration::model, data, rule or sampler if it is a program's own and has no
/// name; no command of `rubato` has them.
inline constexpr std::string_view kOwn = "own";

/// The configuration of a run, as a value. The members, their types, defaults and meanings are the
/// rows of run_options.def; run_option.hpp has the table at run time.
///
/// Members of type Parsed are valid from the beginning; patterns are kept as text. Empty text means
/// that an option is not set. The functions that read a configuration leave every value in its
/// range; require_valid() checks one that was made by hand.
struct RunConfiguration {
#define RUBATO_OPTION(type, member, fallback, ...) type member = fallback;
#include <rubato/runs/run_options.def>

  /// The names that are known besides the built-in ones. Text is read with those that are here at
  /// that time.
  Extensions extensions{};

  friend bool operator==(const RunConfiguration&, const RunConfiguration&) = default;
};

/// Loads the plug-ins that a configuration names, adds their parts to its extensions and the
/// SHA-256 of each to RunConfiguration::plugin. They stay loaded until the process ends. Throws
/// Error for a file that is not a plug-in of this version of rubato, that differs from the SHA-256
/// given there, or whose entry point throws. A plug-in's code runs with all rights of the process.
void load_plugins(RunConfiguration& configuration);

/// The optimizer of a configuration, with all its options; if it is the user's own, they say only
/// that it has no momentum. Throws Refused for --nesterov with one that does not have it.
[[nodiscard]] OptimizerOptions optimizer_options(const RunConfiguration& configuration);

/// The limits of a configuration's training besides its epochs.
[[nodiscard]] Budget budget_of(const RunConfiguration& configuration);

/// The metrics that it measures on the test set, by --metric and --top-k.
[[nodiscard]] TestMetrics test_metrics_of(const RunConfiguration& configuration);

/// The options of Trainer that correspond to those of a configuration.
[[nodiscard]] TrainOptions train_options(const RunConfiguration& configuration);

/// Throws Error for a value out of its range, and for values that contradict each other, this
/// machine or the file system; the message names the option as the command line spells it. Reads
/// neither the data nor the trace.
void require_valid(const RunConfiguration& configuration);

/// The second half of require_valid(), for a configuration whose values are in their ranges.
void require_consistent(const RunConfiguration& configuration);

// A configuration file is TOML: a line `name = value` for each option that differs from its
// default. Numbers, true and false are written as they are, everything else in quotes; a whole
// number beyond TOML's range, 64 bits with a sign, may be in quotes, too.

/// Reads a configuration file. Relative paths in it are relative to its folder. Throws Error with
/// file and line for invalid TOML, an unknown option, a value of the wrong type or out of its
/// range, and an option that occurs twice. Names among `arguments_only` have a message of their
/// own: a program accepts them as arguments, but not in a file.
///
/// Names are read with the extensions of `around`, to which are added those of the plug-ins that
/// the file names; these are loaded as by load_plugins(). If `around` has plug-ins, they replace
/// the file's.
[[nodiscard]] RunConfiguration read_configuration(
    const std::filesystem::path& file, std::span<const std::string_view> arguments_only = {},
    const RunConfiguration& around = {});

/// The same for text in memory; `source` stands for the file's name in messages. Paths are left as
/// they are, and nothing is loaded.
[[nodiscard]] RunConfiguration parse_configuration(
    std::string_view text, const std::string& source,
    std::span<const std::string_view> arguments_only = {}, const Extensions& extensions = {});

/// The configuration with its paths as a file in `folder` should have them, so that the folder can
/// be moved: relative to it if inside, absolute otherwise.
[[nodiscard]] RunConfiguration with_paths_from(const std::filesystem::path& folder,
                                               RunConfiguration configuration);

/// The text of a configuration file with all options that are set: parse_configuration() reads it
/// back to the same values. Throws Error for text that is not UTF-8, which TOML cannot hold.
[[nodiscard]] std::string to_toml(const RunConfiguration& configuration);

}  // namespace rubato
