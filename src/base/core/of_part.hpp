#pragma once

namespace rubato {

/// The accessor of a member of a member, for a column or a field of what contains it.
template <class Record, class Part, class Value>
[[nodiscard]] auto of_part(Part Record::*part, Value Part::*member) {
  return [ part, member ](auto& record) -> auto& {
    return record.*part.*member;
  };
}

}  // namespace rubato
