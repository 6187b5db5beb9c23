// A State is two sorted maps, one of arrays and one of texts. A state within a state is a common
// prefix "NAME/" of its keys, which makes part() a range of both maps and keeps files flat.
// StateVisitor is the only code that distinguishes saving, loading and showing; its functions end
// in a put to a State, a read from a State, or a call of the function that entries are shown to.
// Optional values and flags are stored by presence: an entry that is absent means empty or false.

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/state.hpp>

#include "base/core/check.hpp"
#include "base/core/throw_error.hpp"
#include "sha256.hpp"

namespace rubato {

namespace {

const ElementTypeName& entry_of(ElementType type) {
  const auto* const found =
      std::find_if(kElementTypes.begin(), kElementTypes.end(),
                   [type](const ElementTypeName& entry) { return entry.type == type; });
  RUBATO_CHECK(found != kElementTypes.end(), "every element type has a name");
  return *found;
}

[[noreturn]] void fail_taken(std::string_view name) {
  throw_error("the state has a '{}' already; accepted: each name once", name);
}

}  // namespace

std::string_view name_of(ElementType type) {
  return entry_of(type).name;
}

std::size_t size_of(ElementType type) {
  return entry_of(type).bytes;
}

void State::put_array(std::string_view name, StateArray array) {
  std::size_t elements = 1;
  for (const std::int64_t extent : array.shape) elements *= static_cast<std::size_t>(extent);
  if (array.bytes.size() != elements * size_of(array.type)) {
    throw_error("'{}' has {} bytes; accepted: {} for {} elements of type {}", name,
                array.bytes.size(), elements * size_of(array.type), elements, name_of(array.type));
  }
  if (has_text(name)) fail_taken(name);
  if (!arrays_.emplace(name, std::move(array)).second) fail_taken(name);
}

void State::put_text(std::string_view name, std::string text) {
  if (has(name)) fail_taken(name);
  if (!texts_.emplace(name, std::move(text)).second) fail_taken(name);
}

void State::put(std::string_view name, State part) {
  const std::string within = std::string(name) + '/';
  for (auto& [of_part, array] : part.arrays_) put_array(within + of_part, std::move(array));
  for (auto& [of_part, text] : part.texts_) put_text(within + of_part, std::move(text));
}

State State::part(std::string_view name) const {
  const std::string within = std::string(name) + '/';
  State part;
  part.within_ = within_ + within;
  const auto copy = [&within](const auto& all, auto& some) {
    for (auto it = all.lower_bound(within); it != all.end() && it->first.starts_with(within);
         ++it) {
      some.emplace(it->first.substr(within.size()), it->second);
    }
  };
  copy(arrays_, part.arrays_);
  copy(texts_, part.texts_);
  return part;
}

std::string State::whole_name(std::string_view name) const {
  return within_ + std::string(name);
}

const StateArray& State::array(std::string_view name) const {
  const auto found = arrays_.find(name);
  if (found == arrays_.end()) throw_error("the state has no '{}'", whole_name(name));
  return found->second;
}

const std::string& State::text(std::string_view name) const {
  const auto found = texts_.find(name);
  if (found == texts_.end()) throw_error("the state has no '{}'", whole_name(name));
  return found->second;
}

std::int64_t State::count(std::string_view name) const {
  const auto number = value<std::int64_t>(name);
  if (number < 0) {
    throw_error("the state's '{}' is {}; accepted: at least 0", whole_name(name), number);
  }
  return number;
}

const StateArray& State::array_of(std::string_view name, ElementType type) const {
  const StateArray& found = array(name);
  if (found.type != type) {
    throw_error("the state's '{}' is {}; accepted: {}", whole_name(name), name_of(found.type),
                name_of(type));
  }
  return found;
}

void State::require_elements(std::string_view name, const StateArray& array,
                             std::size_t count) const {
  const std::size_t elements = array.bytes.size() / size_of(array.type);
  if (elements == count) return;
  throw_error("the state's '{}' has {} elements; accepted: {}", whole_name(name), elements, count);
}

bool StateVisitor::has(std::string_view name, bool saved) const {
  if (!loading()) return saved;
  const std::string whole = path(name);
  return from_->has(whole) || from_->has_text(whole);
}

bool StateVisitor::has_none() const {
  if (!loading()) return false;
  const auto none = [this](const auto& all) {
    const auto first = all.lower_bound(prefix_);
    return first == all.end() || !first->first.starts_with(prefix_);
  };
  return none(from_->arrays()) && none(from_->texts());
}

void StateVisitor::count(std::string_view name, std::int64_t& count) {
  if (loading()) {
    count = from_->count(path(name));
  } else {
    value(name, count);
  }
}

void StateVisitor::text(std::string_view name, std::string& text) {
  if (loading()) {
    text = from_->text(path(name));
  } else if (showing()) {
    (*show_)(path(name), std::as_bytes(std::span(text)));
  } else {
    to_->put_text(path(name), text);
  }
}

void StateVisitor::array(std::string_view name, StateArray& array) {
  if (loading()) {
    array = from_->array(path(name));
  } else {
    put(path(name), array.type, array.shape, std::as_bytes(std::span(array.bytes)));
  }
}

void StateVisitor::put(const std::string& path, ElementType type, std::vector<std::int64_t> shape,
                       std::span<const std::byte> bytes) {
  if (showing()) return (*show_)(path, bytes);
  StateArray array{.type = type, .shape = std::move(shape)};
  if (!bytes.empty()) {
    array.bytes.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  to_->put_array(path, std::move(array));
}

void StateVisitor::optional(std::string_view name, std::optional<double>& value) {
  const bool there = has(name, value.has_value());
  double number = value.value_or(0);
  if (there) this->value(name, number);
  if (loading()) value = there ? std::optional(number) : std::nullopt;
}

void StateVisitor::flag(std::string_view name, bool& value) {
  const bool there = has(name, value);
  std::int64_t one = 1;
  if (there) count(name, one);
  if (loading()) value = there;
}

std::string StateVisitor::bound(std::string_view name, const std::string& now) {
  std::string text = now;
  this->text(name, text);
  return text;
}

std::string StateVisitor::bound_if_there(std::string_view name, const std::string& now) {
  return has(name, true) ? bound(name, now) : now;
}

void StateVisitor::require(bool good, std::string_view what) const {
  if (loading() && !good) throw_error("the state is damaged: {}", what);
}

std::size_t NamedArray::size() const {
  return static_cast<std::size_t>(
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()));
}

void NamedArray::require_type(ElementType asked) const {
  if (type == asked) return;
  throw_error("'{}' holds {}, and {} was asked for; accepted: {}", name, name_of(type),
              name_of(asked), name_of(type));
}

std::span<std::byte> NamedArray::bytes() const {
  return {static_cast<std::byte*>(data), size() * size_of(type)};
}

void put_array(State& state, std::string_view prefix, const NamedArray& array) {
  const std::span<const std::byte> bytes = array.bytes();
  StateArray copy{.type = array.type, .shape = array.shape};
  if (!bytes.empty()) copy.bytes.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  state.put_array(std::string(prefix) + array.name, std::move(copy));
}

void read_array(const State& state, std::string_view prefix, const NamedArray& array) {
  const std::string name = std::string(prefix) + array.name;
  const StateArray& found = state.array(name);
  if (found.type != array.type || found.shape != array.shape) {
    throw_error("the state's '{}' is {} of shape [{}], the model's {} of shape [{}]", name,
                name_of(found.type), fmt::join(found.shape, ", "), name_of(array.type),
                fmt::join(array.shape, ", "));
  }
  if (!found.bytes.empty()) std::memcpy(array.data, found.bytes.data(), found.bytes.size());
}

void visit_array(StateVisitor& state, std::string_view prefix, const NamedArray& array) {
  if (state.loading()) {
    read_array(*state.from_, state.path(prefix), array);
  } else {
    state.put(state.path(prefix) + array.name, array.type, array.shape, array.bytes());
  }
}

std::string sha256_of(std::span<const NamedArray> arrays) {
  Sha256 sha;
  for (const NamedArray& array : arrays) sha.add(array.bytes().data(), array.bytes().size());
  return sha.hex();
}

ArrayCopies::ArrayCopies(std::span<const NamedArray> arrays)
    : arrays_(arrays.begin(), arrays.end()) {
  for (NamedArray& array : arrays_) {
    const std::span<const std::byte> bytes = array.bytes();
    // std::byte[] from new is aligned for every type of element.
    memory_.push_back(std::make_unique<std::byte[]>(bytes.size()));
    if (!bytes.empty()) std::memcpy(memory_.back().get(), bytes.data(), bytes.size());
    array.data = memory_.back().get();
  }
}

}  // namespace rubato
