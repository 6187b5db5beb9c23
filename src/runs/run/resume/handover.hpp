#pragma once

#include <map>
#include <string>
#include <string_view>

#include <rubato/base/state.hpp>
#include <rubato/runs/run.hpp>

namespace rubato {

/// A run in its middle, for another host to go on with.
struct Handover {
  State state;
  /// Files of its folder that the state relies on, by name: its metrics, and those for TensorBoard.
  std::map<std::string, std::string> records;
};

/// Of a run with a folder, which is not in execute(). Throws OutputError where its records cannot
/// be read back.
[[nodiscard]] Handover hand_over(Run& run);

/// As bytes that can be checked, those of a state.
[[nodiscard]] std::string handover_bytes(Handover handover);
/// Throws Error where they are damaged, or name a file that is no such record.
[[nodiscard]] Handover parse_handover(std::string_view bytes);

}  // namespace rubato
