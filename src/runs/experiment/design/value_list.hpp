#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runs/config/run_option.hpp"

namespace rubato {

/// The values that `text` lists for an option, such as "linear,root". A piece such as
/// "smoothing=0.9" belongs to the value before it, so that "adascale:smoothing=0.9,linear" is two
/// values. Whole numbers can be ranges: "1..5". For an option whose values may contain commas, such
/// as --no-decay, the text is one value. Names in `own` are known, too. Throws Error for an empty
/// piece, an invalid or too long range, and a value that the option does not accept; the message
/// does not name the option.
[[nodiscard]] std::vector<std::string> list_values(const RunOption& option, std::string_view text,
                                                   const Extensions& own = {});

/// A piece "NAME=VALUE" of a list. A value with arguments, which has a colon, takes the pieces that
/// follow: "trace=spot:most=4,seed=1,life=2" is one piece.
struct Assigned {
  std::string name;
  std::string value;

  friend bool operator==(const Assigned&, const Assigned&) = default;
};
/// Splits a list into such pieces. Throws Error for a piece of another form.
[[nodiscard]] std::vector<Assigned> list_assigned(std::string_view text);

/// Short names of an option's values for people: a file has its name without folder and extension
/// ("a100" for "data/a100.csv"), a folder of data has its name, a run has it with the step
/// ("first@120"), and any other value its text.
/// Values whose names would be equal keep their whole text.
[[nodiscard]] std::vector<std::string> labels_of(std::string_view option,
                                                 const std::vector<std::string>& values);

/// `text` as part of a file name: its first 60 characters, with '-' in place of everything except
/// letters, digits, '.', '_', '+' and '-'.
[[nodiscard]] std::string slug(std::string_view text);

}  // namespace rubato
