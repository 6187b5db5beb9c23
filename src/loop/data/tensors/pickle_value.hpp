#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rubato {

/// What a pickle holds, as data: nothing that it names is called.
struct PickleValue {
  enum class Kind {
    none,
    boolean,
    integer,
    real,
    text,
    /// "module.name".
    global,
    tuple,
    list,
    /// A dict, or an OrderedDict.
    dict,
    /// What a call of items[0] with the tuple items[1] would make.
    call,
    /// What lies outside, items[0] says where.
    persistent,
  };
  Kind kind = Kind::none;
  std::int64_t integer = 0;
  double real = 0;
  std::string text{};
  /// Of a tuple, list, call or persistent value.
  std::vector<const PickleValue*> items{};
  std::vector<std::pair<const PickleValue*, const PickleValue*>> entries{};
};

/// A pickle of protocol 2 to 4, as Python and libtorch write those of tensors.
class Pickle {
 public:
  /// `source` stands for the file in messages, and `accepted` says what is wanted. Takes memory in
  /// proportion to `bytes`. Throws Error for what is damaged, or does what no dictionary of tensors
  /// needs.
  Pickle(std::string_view bytes, const std::string& source, std::string_view accepted);
  Pickle(const Pickle&) = delete;
  Pickle& operator=(const Pickle&) = delete;
  ~Pickle() = default;

  /// What was pickled, without the type that libtorch's C++ writes around a dictionary.
  [[nodiscard]] const PickleValue& value() const { return *value_; }

 private:
  class Machine;

  // All of them lie here, so that no nesting is too deep to be destroyed.
  std::deque<PickleValue> values_;
  const PickleValue* value_ = nullptr;
};

}  // namespace rubato
