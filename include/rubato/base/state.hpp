#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rubato/base/error.hpp>
#include <rubato/base/index.hpp>
#include <rubato/base/parse.hpp>

namespace rubato {

/// Consumes the next bytes of a file or of a message.
using ByteSink = std::function<void(std::string_view bytes)>;

/// Passes all bytes of something to a sink, in order and piece by piece, so that large data never
/// lies in memory as a whole.
using ByteSource = std::function<void(const ByteSink& sink)>;

struct NamedArray;

/// The types of elements that a State holds. The names are those of the safetensors format.
enum class ElementType { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };

struct ElementTypeName {
  ElementType type;
  std::string_view name;
  std::size_t bytes;
};
inline constexpr std::array<ElementTypeName, 10> kElementTypes{{{ElementType::f64, "F64", 8},
                                                                {ElementType::f32, "F32", 4},
                                                                {ElementType::f16, "F16", 2},
                                                                {ElementType::bf16, "BF16", 2},
                                                                {ElementType::i64, "I64", 8},
                                                                {ElementType::i32, "I32", 4},
                                                                {ElementType::i16, "I16", 2},
                                                                {ElementType::i8, "I8", 1},
                                                                {ElementType::u8, "U8", 1},
                                                                {ElementType::boolean, "BOOL", 1}}};

[[nodiscard]] std::string_view name_of(ElementType type);
[[nodiscard]] std::size_t size_of(ElementType type);

/// An array of numbers with its type and shape, as bytes.
struct StateArray {
  ElementType type = ElementType::f64;
  /// Empty for a single number.
  std::vector<std::int64_t> shape{};
  /// Row-major, in the machine's (little-endian) byte order.
  std::string bytes{};

  friend bool operator==(const StateArray&, const StateArray&) = default;
};

template <class T>
concept StateElement =
    std::same_as<T, double> || std::same_as<T, float> || std::same_as<T, std::int64_t>;

template <StateElement T>
[[nodiscard]] constexpr ElementType element_type_of() {
  if constexpr (std::same_as<T, double>) return ElementType::f64;
  if constexpr (std::same_as<T, float>) return ElementType::f32;
  if constexpr (std::same_as<T, std::int64_t>) return ElementType::i64;
}

/// All that a computation must remember to continue from where it is: arrays and texts by name. A
/// value type; write_state() and read_state() keep it in a file.
///
/// Reading throws an Error that names the entry if it is missing or has another type or size; so
/// does putting a name a second time.
class State {
 public:
  /// Adds an entry; a name can be used once, for an array or for a text. The bytes must match the
  /// shape.
  void put_array(std::string_view name, StateArray array);
  void put_text(std::string_view name, std::string text);
  template <StateElement T>
  void put(std::string_view name, std::span<const T> values) {
    put_array(name, {.type = element_type_of<T>(),
                     .shape = {static_cast<std::int64_t>(values.size())},
                     .bytes = {reinterpret_cast<const char*>(values.data()), values.size_bytes()}});
  }
  template <StateElement T>
  void put(std::string_view name, const std::vector<T>& values) {
    put(name, std::span<const T>(values));
  }
  template <StateElement T>
  void put(std::string_view name, T value) {
    put_array(name, {.type = element_type_of<T>(),
                     .shape = {},
                     .bytes = {reinterpret_cast<const char*>(&value), sizeof(T)}});
  }

  /// Adds all entries of `part`, each with its name behind "NAME/": a state within a state.
  void put(std::string_view name, State part);
  /// The state that was put under `name`; empty if there is none. Its errors give the whole name.
  [[nodiscard]] State part(std::string_view name) const;
  [[nodiscard]] bool empty() const { return arrays_.empty() && texts_.empty(); }

  [[nodiscard]] bool has(std::string_view name) const { return arrays_.contains(name); }
  [[nodiscard]] bool has_text(std::string_view name) const { return texts_.contains(name); }
  [[nodiscard]] const StateArray& array(std::string_view name) const;
  [[nodiscard]] const std::string& text(std::string_view name) const;
  template <StateElement T>
  [[nodiscard]] std::vector<T> values(std::string_view name) const {
    const StateArray& found = array_of(name, element_type_of<T>());
    std::vector<T> result(found.bytes.size() / sizeof(T));
    copy(found, result.data());
    return result;
  }
  /// Copies the values to `out`, which must have exactly their number of elements.
  template <StateElement T>
  void read(std::string_view name, std::span<T> out) const {
    const StateArray& found = array_of(name, element_type_of<T>());
    require_elements(name, found, out.size());
    copy(found, out.data());
  }
  template <StateElement T>
  [[nodiscard]] T value(std::string_view name) const {
    T one{};
    read(name, std::span<T>(&one, 1));
    return one;
  }
  /// A count: an int64 of at least 0.
  [[nodiscard]] std::int64_t count(std::string_view name) const;

  using Arrays = std::map<std::string, StateArray, std::less<>>;
  using Texts = std::map<std::string, std::string, std::less<>>;
  [[nodiscard]] const Arrays& arrays() const { return arrays_; }
  [[nodiscard]] const Texts& texts() const { return texts_; }

  friend bool operator==(const State& a, const State& b) {
    return a.arrays_ == b.arrays_ && a.texts_ == b.texts_;
  }

 private:
  static void copy(const StateArray& from, void* to) {
    if (!from.bytes.empty()) std::memcpy(to, from.bytes.data(), from.bytes.size());
  }
  [[nodiscard]] const StateArray& array_of(std::string_view name, ElementType type) const;
  void require_elements(std::string_view name, const StateArray& array, std::size_t count) const;
  [[nodiscard]] std::string whole_name(std::string_view name) const;

  Arrays arrays_;
  Texts texts_;
  // The prefix of the state that this is a part of, for messages: "observer/best-weights/".
  std::string within_;
};

/// Receives the name of an entry and its bytes, which are valid during the call only.
using ShowEntry = std::function<void(std::string_view name, std::span<const std::byte> bytes)>;

/// Visits the entries that an object remembers, one by one, and writes them to a state, reads them
/// from one, or shows them to a function without copying them. All three share one function, so
/// they cannot differ:
///
///     void visit_state(StateVisitor& state) {
///       state.count("steps", steps_);
///       state.values("velocity", std::span<float>(velocity_));
///     }
///
/// state_of(), load_state() and show_state() call it. Saving and showing change nothing. Loading
/// throws Error, with the entry's name, for an entry that is missing, of another type or size, or
/// out of range; the object must not be used any more then.
class StateVisitor {
 public:
  /// Creates a visitor that saves; the state must outlive it.
  [[nodiscard]] static StateVisitor into(State& state) { return {&state, nullptr, nullptr, {}}; }
  /// Creates a visitor that loads; the state must outlive it.
  [[nodiscard]] static StateVisitor out_of(const State& state) {
    return {nullptr, &state, nullptr, {}};
  }
  static StateVisitor out_of(State&& state) = delete;
  /// Creates a visitor that loads the state of a training with other options (Trainer::fork());
  /// the state must outlive it.
  [[nodiscard]] static StateVisitor forking(const State& state) {
    StateVisitor visitor = out_of(state);
    visitor.forks_ = true;
    return visitor;
  }
  /// Creates a visitor that shows the entries that one that saves would write; the function must
  /// outlive it.
  [[nodiscard]] static StateVisitor to(const ShowEntry& show) {
    return {nullptr, nullptr, &show, {}};
  }
  static StateVisitor to(ShowEntry&& show) = delete;

  /// True when loading: for values derived from the entries, and for work on files that depends on
  /// them.
  [[nodiscard]] bool loading() const { return from_ != nullptr; }
  /// True when loading the state of a training with other options: what it was bound to may differ,
  /// and parts for which it has nothing begin anew.
  [[nodiscard]] bool forks() const { return forks_; }
  /// True when showing: for an object that saves bytes of which its numbers are only a part.
  [[nodiscard]] bool showing() const { return show_ != nullptr; }
  /// True if an optional entry exists; `saved` unless loading.
  [[nodiscard]] bool has(std::string_view name, bool saved) const;
  /// True when loading and no entry exists at all.
  [[nodiscard]] bool has_none() const;

  template <StateElement T>
  void value(std::string_view name, T& value) {
    values(name, std::span<T>(&value, 1), {});
  }
  /// A count of at least 0.
  void count(std::string_view name, std::int64_t& count);
  template <class Tag>
  void count(std::string_view name, Index<Tag>& index) {
    std::int64_t of_index = index.value();
    count(name, of_index);
    index = Index<Tag>(of_index);
  }
  /// A fixed number of values: the size of the span.
  template <StateElement T>
  void values(std::string_view name, std::span<T> values) {
    this->values(name, values, {static_cast<std::int64_t>(values.size())});
  }
  /// Any number of values.
  template <StateElement T>
  void list(std::string_view name, std::vector<T>& values) {
    if (loading()) {
      values = from_->values<T>(path(name));
    } else {
      this->values(name, std::span<T>(values));
    }
  }
  void text(std::string_view name, std::string& text);
  void array(std::string_view name, StateArray& array);
  /// An entry that exists only if the optional is not empty.
  void optional(std::string_view name, std::optional<double>& value);
  /// An entry that exists, as 1, only if the flag is true.
  void flag(std::string_view name, bool& value);
  /// The numbers that a NumberVisitor visits in `part`, which messages call `what`.
  template <class Part>
  void numbers(std::string_view name, Part& part, std::string_view what) {
    if (loading()) {
      load_numbers(part, from_->values<double>(path(name)), what);
    } else {
      std::vector<double> numbers = numbers_of(part);
      list(name, numbers);
    }
  }

  /// A text that the state is bound to: saves or shows `now`; returns it or, when loading, the
  /// saved text for the caller to compare.
  [[nodiscard]] std::string bound(std::string_view name, const std::string& now);
  /// Like bound(), but returns `now` if no text has been saved.
  [[nodiscard]] std::string bound_if_there(std::string_view name, const std::string& now);

  /// A visitor that puts "NAME/" before all names.
  [[nodiscard]] StateVisitor part(std::string_view name) const {
    StateVisitor part(to_, from_, show_, path(name) + '/');
    part.forks_ = forks_;
    return part;
  }

  /// Throws Error, "the state is damaged: WHAT", unless `good`.
  void require(bool good, std::string_view what) const;

 private:
  friend void visit_array(StateVisitor& state, std::string_view prefix, const NamedArray& array);

  StateVisitor(State* to, const State* from, const ShowEntry* show, std::string prefix)
      : to_(to), from_(from), show_(show), prefix_(std::move(prefix)) {}

  [[nodiscard]] std::string path(std::string_view name) const {
    return prefix_ + std::string(name);
  }
  template <StateElement T>
  void values(std::string_view name, std::span<T> values, std::vector<std::int64_t> shape) {
    if (loading()) {
      from_->read(path(name), values);
    } else {
      put(path(name), element_type_of<T>(), std::move(shape), std::as_bytes(values));
    }
  }
  // Saves or shows an array.
  void put(const std::string& path, ElementType type, std::vector<std::int64_t> shape,
           std::span<const std::byte> bytes);

  // Exactly one of the three is not null.
  State* to_;
  const State* from_;
  const ShowEntry* show_;
  std::string prefix_;
  bool forks_ = false;
};

/// The state of `part`; `arguments` are passed on to its visit_state(), which changes nothing when
/// it saves: that makes the const_cast safe.
template <class Part, class... Arguments>
[[nodiscard]] State state_of(const Part& part, Arguments&&... arguments) {
  State state;
  StateVisitor visitor = StateVisitor::into(state);
  const_cast<Part&>(part).visit_state(visitor, std::forward<Arguments>(arguments)...);
  return state;
}

/// Shows the entries of state_of() to a function, without copying them.
template <class Part, class... Arguments>
void show_state(const Part& part, const ShowEntry& show, Arguments&&... arguments) {
  StateVisitor visitor = StateVisitor::to(show);
  const_cast<Part&>(part).visit_state(visitor, std::forward<Arguments>(arguments)...);
}

/// Restores `part` from a state.
template <class Part, class... Arguments>
void load_state(Part&& part, const State& state, Arguments&&... arguments) {
  StateVisitor visitor = StateVisitor::out_of(state);
  part.visit_state(visitor, std::forward<Arguments>(arguments)...);
}

/// A named view of an array of numbers that lies elsewhere, such as a parameter of a model.
struct NamedArray {
  std::string name{};
  ElementType type = ElementType::f32;
  /// Empty for a single number.
  std::vector<std::int64_t> shape{};
  /// Row-major and dense.
  void* data = nullptr;

  /// The number of elements.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] std::span<std::byte> bytes() const;
  /// The elements. Throws Error unless they are of type T.
  template <StateElement T>
  [[nodiscard]] std::span<T> values() const {
    require_type(element_type_of<T>());
    return {static_cast<T*>(data), size()};
  }

 private:
  void require_type(ElementType asked) const;
};

/// Adds the values of an array to a state, under `prefix` and its name.
void put_array(State& state, std::string_view prefix, const NamedArray& array);
/// Copies the values back. Throws Error if the state's have another type or shape.
void read_array(const State& state, std::string_view prefix, const NamedArray& array);
/// Calls put_array() or read_array(), as the visitor saves or loads; or shows the array.
void visit_array(StateVisitor& state, std::string_view prefix, const NamedArray& array);

/// The SHA-256, in hexadecimal, of the values of `arrays`: their bytes as this machine holds them,
/// one array after the other. It is the fingerprint of a training result.
[[nodiscard]] std::string sha256_of(std::span<const NamedArray> arrays);

/// Copies of arrays, which keep their values while the originals change.
class ArrayCopies {
 public:
  ArrayCopies() = default;
  explicit ArrayCopies(std::span<const NamedArray> arrays);

  /// The copies, with the originals' names, types and shapes; valid while this object lives and is
  /// not assigned to.
  [[nodiscard]] const std::vector<NamedArray>& arrays() const { return arrays_; }

 private:
  std::vector<NamedArray> arrays_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

/// The version of the files that write_state() writes; read_state() reads older ones, too.
inline constexpr std::int64_t kStateVersion = 1;

/// Thrown for a file that a newer version of rubato has written.
class NewerVersion : public Error {
 public:
  using Error::Error;
};

/// A State as the bytes of a file in the safetensors format, which other tools can read
/// (https://github.com/huggingface/safetensors):
///
///     8 bytes   length of the header, little-endian
///     header    JSON: {"__metadata__": {texts}, "name": {"dtype", "shape", "data_offsets"}, ...}
///     data      the arrays
///
/// The texts "rubato.kind" and "rubato.version" say what it is. The last array, "rubato.sha256", is
/// the SHA-256 of all bytes before it, so that every change in the file is detected.
[[nodiscard]] std::string state_bytes(const State& state);
/// Writes the same bytes to a sink.
void stream_state(const State& state, const ByteSink& sink);

/// The State in such bytes; `source` names them in messages. Throws Error if they are damaged (cut
/// off, changed) or not such a file, and NewerVersion. Takes no more memory than a small multiple
/// of the bytes, whatever sizes they claim.
[[nodiscard]] State parse_state(std::string_view bytes, std::string_view source);

/// Writes the bytes of a State to a file, and reads them back, like write_file() and read_file().
void write_state(const std::filesystem::path& path, const State& state);
[[nodiscard]] State read_state(const std::filesystem::path& path);

}  // namespace rubato
