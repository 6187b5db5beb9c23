#include "hyperparameters.hpp"

#include <filesystem>
#include <limits>
#include <utility>

#include <rubato/base/parse.hpp>

namespace rubato {

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
    switch (hyperparameter_column(option.name).type) {
      case HyperparameterType::flag:
        hyperparameter.value = parse_flag(*text);
        break;
      case HyperparameterType::number:
        hyperparameter.value = parse_real(*text, kAnyNumber);
        break;
      case HyperparameterType::text:
        hyperparameter.value = *std::move(text);
        break;
    }
  }
  return hyperparameters;
}

HyperparameterColumn hyperparameter_column(const std::string& option) {
  const auto type = [kind = run_option(option).kind] {
    switch (kind) {
      case OptionKind::flag:
        return HyperparameterType::flag;
      case OptionKind::whole:
      case OptionKind::real:
        return HyperparameterType::number;
      case OptionKind::text:
      case OptionKind::text_or_number:
        break;
    }
    return HyperparameterType::text;
  };
  return {.name = option, .type = type()};
}

}  // namespace rubato
