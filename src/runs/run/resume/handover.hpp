#pragma once

#include <map>
#include <string>
#include <string_view>

#include <rubato/base/state.hpp>
#include <rubato/runs/run.hpp>

namespace rubato {

/// An unfinished run, for another host to continue.
struct Handover {
  State state;
  /// The files of its folder that the state relies on, by name: its metrics, and those for
  /// TensorBoard.
  std::map<std::string, std::string> records;
};

/// Collects the handover of a run with a folder, which is not in execute(). Throws OutputError if
/// its records cannot be read back.
[[nodiscard]] Handover hand_over(Run& run);

/// The handover as the bytes of a State, which contain checksums.
[[nodiscard]] std::string handover_bytes(Handover handover);
/// The inverse. Throws Error if the bytes are damaged, or name a file that is not such a record.
[[nodiscard]] Handover parse_handover(std::string_view bytes);

}  // namespace rubato
