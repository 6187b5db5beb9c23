#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/config/families.hpp>
#include <rubato/core/choice.hpp>
#include <rubato/machine/kernels.hpp>
#include <rubato/plan/assignment.hpp>
#include <rubato/plan/budget.hpp>
#include <rubato/plan/plan.hpp>
#include <rubato/recipe/buffer_use.hpp>
#include <rubato/recipe/checkpoint_interval.hpp>
#include <rubato/recipe/optimizer_options.hpp>
#include <rubato/recipe/test_metrics.hpp>
#include <rubato/scaling/lr_schedule.hpp>
#include <rubato/scaling/metric.hpp>
#include <rubato/sim/clocked_source.hpp>
#include <rubato/trace/trace.hpp>

namespace rubato {

struct AugmentationOptions;  // recipe/augmentation_options.hpp
struct ClusterModel;         // sim/cluster_model.hpp
struct DataSource;           // config/data_source.hpp
struct Fault;                // runtime/faults.hpp
struct FaultOptions;         // runtime/faults.hpp
struct InitializerOptions;   // recipe/initializer_options.hpp
struct LossChoice;           // config/loss.hpp
struct ModelChoice;          // config/engine.hpp
struct OwnOperators;         // recipe/own_operators.hpp
struct PrecisionOptions;     // recipe/precision.hpp
struct Straggler;            // runtime/faults.hpp
struct TraceChoice;          // config/trace_source.hpp

/// What an option says, with the text that says it. It is parsed once, when it is made of text, and
/// never changes:
///
///     RunConfiguration run;
///     run.model = "mlp:hidden=64";  // throws Error for what is no model
///     run.model.text();             // "mlp:hidden=64"
///
/// Copies share what it says and are cheap.
template <class T>
class Parsed {
 public:
  /// Of empty text: the option is not set.
  Parsed() : Parsed(std::string_view()) {}
  /// Throws Error for text that is not accepted: what is wrong with it, and what would be accepted.
  template <std::convertible_to<std::string_view> Text>
  Parsed(const Text& text) : Parsed(text, Extensions()) {}
  /// The same with names of the user's own.
  template <std::convertible_to<std::string_view> Text>
  Parsed(const Text& text, const Extensions& own)
      : text_(std::string_view(text)), value_(parse(text_, own)) {}

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool empty() const { return text_.empty(); }

  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_.get(); }

  /// Whether they are written alike.
  friend bool operator==(const Parsed& a, const Parsed& b) { return a.text_ == b.text_; }

 private:
  [[nodiscard]] static std::shared_ptr<const T> parse(const std::string& text,
                                                      const Extensions& own);

  std::string text_;
  std::shared_ptr<const T> value_;
};

// Each is defined where what it parses is.
#define RUBATO_PARSED(...)                                                               \
  template <>                                                                            \
  std::shared_ptr<const __VA_ARGS__> Parsed<__VA_ARGS__>::parse(const std::string& text, \
                                                                const Extensions& own);
RUBATO_PARSED(ClusterModel)
RUBATO_PARSED(DataSource)
RUBATO_PARSED(FaultOptions)
RUBATO_PARSED(InitializerOptions)
RUBATO_PARSED(LossChoice)
RUBATO_PARSED(ModelChoice)
RUBATO_PARSED(OwnOperators)
RUBATO_PARSED(PrecisionOptions)
RUBATO_PARSED(TraceChoice)
RUBATO_PARSED(std::optional<CheckpointInterval>)
RUBATO_PARSED(std::vector<AugmentationOptions>)
RUBATO_PARSED(std::vector<Fault>)
RUBATO_PARSED(std::vector<Straggler>)
#undef RUBATO_PARSED

/// Hardware threads that this process may use, by its affinity and its control groups; at least 1.
[[nodiscard]] std::int64_t hardware_threads();

/// Who computes a model.
enum class Engine {
  automatic,  ///< Eigen where it can, which starts at once and is faster there; else libtorch
  eigen,
  libtorch,
};
inline constexpr std::array<Choice<Engine>, 3> kEngines{
    {{Engine::automatic, "auto"}, {Engine::eigen, "eigen"}, {Engine::libtorch, "libtorch"}}};

/// Whose time steps take.
enum class Clock {
  real,      ///< this machine's
  modelled,  ///< that of a ClusterModel
};
inline constexpr std::array<Choice<Clock>, 2> kClocks{
    {{Clock::real, "real"}, {Clock::modelled, "virtual"}}};

/// The test accuracy that a run has to reach.
struct AccuracyTarget {
  /// Above 0, up to 100.
  double percent = 100;
  /// Whether any epoch may reach it; otherwise the last one has to.
  bool best = false;

  friend bool operator==(const AccuracyTarget&, const AccuracyTarget&) = default;
};

/// A part of the training set that a run is tested on.
struct HeldOut {
  /// Above 0, below 1.
  double share = 0;
  /// Of the choice of the samples.
  std::uint64_t seed = 0;

  friend bool operator==(const HeldOut&, const HeldOut&) = default;
};

/// RunConfiguration::model, data and rule of a run whose model, data or rule are a program's own,
/// and have no name: no command of `rubato` has them.
inline constexpr std::string_view kOwn = "own";

/// What a run is configured by, as a value. The members, their types and defaults, and what they
/// mean, are the rows of run_options.def; run_option.hpp has the table at run time.
///
/// What is Parsed is valid from the beginning. The names of rules, schedules, optimizers, reducers,
/// metrics and policies, of which a trainer makes its own parts, and patterns are kept as their
/// text. Text that is empty stands for an option that is not set. The functions that read a
/// configuration leave every value in its range; require_valid() checks one that was made by hand.
struct RunConfiguration {
#define RUBATO_OPTION(type, member, fallback, ...) type member = fallback;
#include <rubato/config/run_options.def>

  /// What names mean besides the built-in ones. Text is read by what is here then.
  Extensions extensions{};

  friend bool operator==(const RunConfiguration&, const RunConfiguration&) = default;
};

/// Loads the plug-ins that a configuration names, whose parts come to its extensions, and puts the
/// SHA-256 of each into RunConfiguration::plugin. What is loaded stays so as long as the process.
/// Throws Error for a file that is no plug-in of this version of rubato, that is not of the SHA-256
/// that is said there, or whose entry point throws. A plug-in's code runs with all rights that the
/// process has.
void load_plugins(RunConfiguration& configuration);

/// The optimizer of a configuration, with all that belongs to it; of one of the user's own only
/// that it has no momentum. Throws Error as parse_optimizer() does.
[[nodiscard]] OptimizerOptions optimizer_options(const RunConfiguration& configuration);

/// What a configuration's training may come to within its epochs.
[[nodiscard]] Budget budget_of(const RunConfiguration& configuration);

/// What it measures on the test set, by --metric and --top-k.
[[nodiscard]] TestMetrics test_metrics_of(const RunConfiguration& configuration);

/// Throws Error for a value out of its range, and for values that contradict each other, this
/// machine or the file system: the message names the option as the command line has it. Does not
/// look into the data or the trace.
void require_valid(const RunConfiguration& configuration);

/// The second half of require_valid(), for a configuration whose values are in their ranges.
void require_consistent(const RunConfiguration& configuration);

}  // namespace rubato
