#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include <rubato/base/parse.hpp>
#include <rubato/base/spec.hpp>

namespace rubato {

// Tables of options with a kind that is chosen by name and has arguments of its own:
// "adam:beta1=0.8". Each table has one row for each kind.

template <class Options, class Kind>
struct OptionsRow {
  Kind kind;
  std::string_view name;
  std::string_view help;
  /// Reads the arguments of this kind, with the options' values as their defaults.
  void (*read)(Spec& spec, Options& options);
};

/// The row of a kind, with its name from `choices`.
template <class Options, class Kind, std::size_t N>
[[nodiscard]] constexpr OptionsRow<Options, Kind> options_row(
    const std::array<Choice<Kind>, N>& choices, Kind kind, std::string_view help,
    void (*read)(Spec&, Options&)) {
  return {.kind = kind, .name = choice_name(choices, kind), .help = help, .read = read};
}

/// The options that `text` asks for: `defaults`, with the kind and the given arguments. `member` is
/// where the options hold the kind, and `what` says what was to be named ("optimizer"). Throws
/// Error for an unknown name, with the nearest, and for arguments that this kind does not take.
template <class Options, class Kind, std::size_t N>
[[nodiscard]] Options parse_options(std::string_view what, std::string_view text,
                                    const std::array<OptionsRow<Options, Kind>, N>& rows,
                                    Kind Options::*member, const Options& defaults = {}) {
  Spec spec(text);
  const OptionsRow<Options, Kind>& row = find_row(what, spec.name(), rows);
  Options options = defaults;
  options.*member = row.kind;
  row.read(spec, options);
  spec.finish();
  return options;
}

/// The strategies of such a table, with the defaults of their arguments.
template <class Options, class Kind, std::size_t N>
[[nodiscard]] std::vector<Strategy> strategies_of(
    const std::array<OptionsRow<Options, Kind>, N>& rows) {
  return strategies_of(rows, [](const OptionsRow<Options, Kind>& row, Spec& spec) {
    Options options;
    row.read(spec, options);
  });
}

}  // namespace rubato
