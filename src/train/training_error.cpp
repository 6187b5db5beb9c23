#include <string>
#include <utility>

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <rubato/core/memory.hpp>
#include <rubato/train/training_error.hpp>

#include "rethrow.hpp"

namespace rubato {

namespace {

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// What TorchScript's interpreter throws begins with that it failed, and ends with why.
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

void rethrow_with_place(Phase phase, const std::string& place) {
  try {
    throw;
  } catch (const TrainingError&) {
    throw;
  } catch (const MemoryError&) {
    throw;
  } catch (const c10::Error& error) {
    if (is_out_of_memory(error)) throw;
    throw TrainingError(phase, place, essence_of(first_line(error.what_without_backtrace())),
                        error.what());
  } catch (const std::exception& error) {
    if (is_out_of_memory(error)) throw;
    throw TrainingError(phase, place, essence_of(error.what()), error.what());
  } catch (...) {
    throw TrainingError(phase, place, "an exception that is no std::exception", "");
  }
}

}  // namespace rubato
