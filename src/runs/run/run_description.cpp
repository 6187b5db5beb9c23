#include "run_description.hpp"

#include <filesystem>
#include <limits>
#include <sstream>
#include <utility>
#include <variant>

#include <rubato/base/parse.hpp>
#include <rubato/base/state.hpp>

#include "base/state/sha256.hpp"
#include "runs/config/run_option.hpp"

namespace rubato {

namespace {

// This many digits suffice for people to tell two contents apart.
constexpr std::size_t kHashDigits = 16;

std::string hash_of(std::string_view content) {
  return Sha256::hex_of(content).substr(0, kHashDigits);
}

std::string text_of(const RunSteps& steps) {
  if (const Trace* const trace = std::get_if<Trace>(&steps)) return trace->to_csv();
  std::ostringstream text;
  for (const Zone& zone : std::get<Zones>(steps).all()) zone.availability.write_csv(text);
  return text.str();
}

}  // namespace

std::vector<NamedText> what_is_asked_for(const RunConfiguration& configuration,
                                         const Workload& workload) {
  std::vector<NamedText> texts{
      {.name = "--kernels", .text = kernels_text(workload.engine().kernels)},
      {.name = "libtorch", .text = workload.engine().version_of("torch")}};
  for (const RunOption& option : run_options()) {
    const bool counts = option.affects == Affects::bits || option.is_agreed;
    if (!counts || option.resume == OnResume::by_content || option.name == "kernels") continue;
    texts.push_back({.name = "--" + option.name,
                     .text = bound_text(option, configuration).value_or("not set")});
  }
  return texts;
}

NamedText what_is_followed(const RunSteps& steps) {
  return {.name = "trace", .text = hash_of(text_of(steps))};
}

std::vector<NamedText> what_is_trained(const RunSteps& steps, const Trainer& trainer,
                                       const State* checkpoint) {
  const Objective& objective = trainer.objective();
  return {
      what_is_followed(steps),
      {.name = "training data", .text = hash_of(objective.fingerprint())},
      {.name = "test data", .text = hash_of(objective.test_fingerprint())},
      {.name = "initial weights", .text = sha256_of(trainer.parameters()).substr(0, kHashDigits)},
      {.name = "initial buffers", .text = sha256_of(trainer.buffers()).substr(0, kHashDigits)},
      {.name = "checkpoint",
       .text = checkpoint == nullptr ? "none" : hash_of(state_bytes(*checkpoint))}};
}

namespace {

namespace fs = std::filesystem;

constexpr RealRange kAnyNumber{std::numeric_limits<double>::lowest(),
                               std::numeric_limits<double>::max(), true, true, "a number"};

fs::path last_name(const fs::path& path) {
  return (path / "").lexically_normal().parent_path().filename();
}

}  // namespace

std::vector<Hyperparameter> hyperparameters_of(const RunConfiguration& configuration) {
  std::vector<Hyperparameter> hyperparameters;
  for (const RunOption& option : run_options()) {
    if (option.affects != Affects::bits && !option.is_hyperparameter) continue;
    auto text = option.text(configuration);
    if (!text || text->empty()) continue;
    if (option.map_path != nullptr) text = option.map_path(*text, last_name);
    Hyperparameter& hyperparameter = hyperparameters.emplace_back();
    hyperparameter.name = option.name;
    const HyperparameterType type = hyperparameter_column(option.name).type;
    if (type == HyperparameterType::flag) {
      hyperparameter.value = parse_flag(*text);
    } else if (type == HyperparameterType::number) {
      hyperparameter.value = parse_real(*text, kAnyNumber);
    } else {
      hyperparameter.value = *std::move(text);
    }
  }
  return hyperparameters;
}

HyperparameterColumn hyperparameter_column(const std::string& option) {
  const OptionKind kind = run_option(option).kind;
  const bool is_number = kind == OptionKind::whole || kind == OptionKind::real;
  return {.name = option,
          .type = kind == OptionKind::flag ? HyperparameterType::flag
                  : is_number              ? HyperparameterType::number
                                           : HyperparameterType::text};
}

}  // namespace rubato
