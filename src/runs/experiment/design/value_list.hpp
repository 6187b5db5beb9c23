#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runs/config/run_option.hpp"

namespace rubato {

/// The values that `text` lists for an option: "linear,root". A piece such as "smoothing=0.9"
/// belongs to the value before it, so that "adascale:smoothing=0.9,linear" are two; whole numbers
/// may be ranges, "1..5". Text for an option whose own values have commas, such as --no-decay, is
/// one value. Throws Error for an empty piece, a range that is none or too long, and for what the
/// option does not accept, by the names of `own`, too; the message does not name the option.
[[nodiscard]] std::vector<std::string> list_values(const RunOption& option, std::string_view text,
                                                   const Extensions& own = {});

/// The pieces of a list of "NAME=VALUE", in which those whose value has arguments (a colon) go on:
/// "trace=spot:most=4,seed=1,life=2" is one.
struct Assigned {
  std::string name;
  std::string value;

  friend bool operator==(const Assigned&, const Assigned&) = default;
};
/// Throws Error for a piece that is not of this form.
[[nodiscard]] std::vector<Assigned> list_assigned(std::string_view text);

}  // namespace rubato
