#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <rubato/plan/assignment.hpp>
#include <rubato/trace/trace.hpp>

#include "app/command_line.hpp"

namespace rubato::app {

/// What `plan` and `train` ask alike: how batches and cores change, and who gets what.
struct ElasticityOptions {
  /// As load_trace() takes it.
  std::string trace = "elastic";
  std::optional<TraceEnd> on_trace_end;
  /// Emulated accelerator cores where the trace does not say.
  std::int64_t cores = 8;
  /// Samples.
  std::int64_t minibatch = 32;
  Assignment assignment = Assignment::contiguous;

  friend bool operator==(const ElasticityOptions&, const ElasticityOptions&) = default;
};

/// Adds the options to `line`, which is to read them into `options`; both must outlive its parse().
void define_elasticity(CommandLine& line, ElasticityOptions& options);

/// Throws Error for an end that the arguments give to a trace that has none.
void require_trace_end(const CommandLine& line, const ElasticityOptions& options);

/// "a|b|c", for --help; or with something else between the names.
template <class Enum, std::size_t N>
[[nodiscard]] std::string names_of(const std::array<Choice<Enum>, N>& choices,
                                   std::string_view between = "|") {
  std::string names;
  for (const auto& choice : choices) {
    names.append(names.empty() ? "" : between).append(choice.name);
  }
  return names;
}

}  // namespace rubato::app
