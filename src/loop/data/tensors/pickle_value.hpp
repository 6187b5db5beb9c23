#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rubato {

/// The contents of a pickle, as data: nothing that it names is called.
struct PickleValue {
  enum class Kind {
    none,
    boolean,
    integer,
    real,
    text,
    /// A global, as "module.name".
    global,
    tuple,
    list,
    /// A dict, or an OrderedDict.
    dict,
    /// The result of a call of items[0] with the tuple items[1]; the call is not made.
    call,
    /// A reference to an object outside of the pickle, which items[0] identifies.
    persistent,
  };
  Kind kind = Kind::none;
  std::int64_t integer = 0;
  double real = 0;
  std::string text{};
  /// The items of a tuple, list, call or persistent value.
  std::vector<const PickleValue*> items{};
  std::vector<std::pair<const PickleValue*, const PickleValue*>> entries{};
};

/// A pickle of protocol 2 to 4, as Python and libtorch write for tensors.
class Pickle {
 public:
  /// Messages name the file as `source`, and the wanted content as `accepted`. Takes memory in
  /// proportion to `bytes`. Throws Error for a damaged pickle, and for operations that no
  /// dictionary of tensors needs.
  Pickle(std::string_view bytes, const std::string& source, std::string_view accepted);
  Pickle(const Pickle&) = delete;
  Pickle& operator=(const Pickle&) = delete;
  ~Pickle() = default;

  /// The pickled value, without the type that libtorch's C++ writes around a dictionary.
  [[nodiscard]] const PickleValue& value() const { return *value_; }

 private:
  class Machine;

  // All values are kept here, so that no nesting is too deep to be destroyed.
  std::deque<PickleValue> values_;
  const PickleValue* value_ = nullptr;
};

}  // namespace rubato
