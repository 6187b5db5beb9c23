#include <string>
#include <utility>

#include <fmt/format.h>

#include <rubato/loop/objective.hpp>

#include "base/core/system/memory.hpp"

namespace rubato {

namespace {

// The texts of libtorch's exceptions end with the place of the throw and its stack.
std::string without_stack(const std::string& text) {
  const std::size_t stack = text.find("\nException raised from ");
  return stack == std::string::npos ? text : text.substr(0, text.find('\n'));
}

// The texts of TorchScript's interpreter begin with a general failure notice, and end with the
// cause.
std::string essence_of(const std::string& text) {
  if (text.find("TorchScript interpreter") == std::string::npos) return text;
  const std::size_t end = text.find_last_not_of(" \n");
  if (end == std::string::npos) return text;
  const std::size_t newline = text.rfind('\n', end);
  return text.substr(newline == std::string::npos ? 0 : newline + 1, end - newline);
}

}  // namespace

TrainingError::TrainingError(Phase phase, const std::string& place, const std::string& message,
                             std::string details)
    : Error(fmt::format("{} of {}: {}", choice_name(kPhases, phase), place, message)),
      phase_(phase),
      details_(std::move(details)) {}

TrainingError::TrainingError(const TrainingError& error, const std::string& more)
    : Error(error.what() + more),
      std::nested_exception(error),
      phase_(error.phase_),
      details_(error.details_) {}

void rethrow_with_place(Phase phase, const std::string& place) {
  try {
    throw;
  } catch (const TrainingError&) {
    throw;
  } catch (const MemoryError&) {
    throw;
  } catch (const std::exception& error) {
    if (is_out_of_memory(error)) throw;
    throw TrainingError(phase, place, essence_of(without_stack(error.what())), error.what());
  } catch (...) {
    throw TrainingError(phase, place, "an exception that is not a std::exception", "");
  }
}

}  // namespace rubato
