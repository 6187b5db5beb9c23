// A pickle is a program for a stack machine, whose operations Python's pickletools.py describes.
// Machine interprets those that torch.save() and libtorch's C++ use for a dictionary of tensors,
// and fails at any other. A call is not made but becomes a value with the function's name and its
// arguments, which saved_tensors.cpp reads; only OrderedDict() becomes the empty dictionary that it
// would return. The deque of the Pickle owns all values, and stack, memo and containers point into
// it, so a value may occur in several places and even in itself: code that descends into values
// must bound its depth.

#include "pickle_value.hpp"

#include <bit>
#include <cstring>
#include <unordered_map>

#include <fmt/format.h>

#include "base/core/throw_error.hpp"

namespace rubato {

namespace {

constexpr std::size_t kMostNameBytes = 256;

}  // namespace

class Pickle::Machine {
 public:
  Machine(std::string_view bytes, const std::string& source, std::string_view accepted,
          std::deque<PickleValue>& values)
      : bytes_(bytes), source_(source), accepted_(accepted), values_(values) {}

  const PickleValue* run() {
    while (true) {
      const unsigned char operation = byte();
      if (operation == '.') return without_type(pop());
      execute(operation);
    }
  }

 private:
  using Kind = PickleValue::Kind;

  // libtorch's C++ wraps a dictionary in its type.
  static const PickleValue* without_type(const PickleValue* value) {
    const bool typed = value->kind == Kind::call &&
                       value->items[0]->text == "torch.jit._pickle.restore_type_tag" &&
                       !value->items[1]->items.empty();
    return typed ? value->items[1]->items[0] : value;
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw_error("{}: its pickle {} (byte {}); accepted: {}", source_, why, at_, accepted_);
  }

  std::string_view take(std::uint64_t size) {
    if (size > bytes_.size() - at_) fail("is cut off");
    const std::string_view taken = bytes_.substr(at_, size);
    at_ += size;
    return taken;
  }
  unsigned char byte() { return static_cast<unsigned char>(take(1).front()); }
  // Reads a little-endian number.
  std::uint64_t whole(std::size_t size) {
    std::uint64_t value = 0;
    const std::string_view digits = take(size);
    for (std::size_t i = size; i-- > 0;) {
      value = value << 8U | static_cast<unsigned char>(digits[i]);
    }
    return value;
  }
  std::string_view line() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) fail("is cut off");
    const std::string_view text = take(end - at_);
    static_cast<void>(byte());
    return text;
  }

  PickleValue& push(Kind kind) {
    PickleValue& value = values_.emplace_back();
    value.kind = kind;
    stack_.push_back(&value);
    return value;
  }
  PickleValue* pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back()))
      fail("takes a value from an empty stack");
    PickleValue* const value = stack_.back();
    stack_.pop_back();
    return value;
  }
  PickleValue& top() {
    PickleValue* const value = pop();
    stack_.push_back(value);
    return *value;
  }
  std::vector<const PickleValue*> pop_to_mark() {
    if (marks_.empty()) fail("takes values to a mark that it has not set");
    std::vector<const PickleValue*> items(
        stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }

  void push_text(Kind kind, std::string_view text) { push(kind).text = text; }
  void push_whole(std::int64_t value) { push(Kind::integer).integer = value; }
  // Pushes a number in two's complement of up to 8 bytes.
  void push_long(std::size_t size) {
    if (size > 8) fail("has a number of more than 64 bits");
    std::uint64_t value = whole(size);
    if (size > 0 && size < 8 && (value >> (8 * size - 1)) != 0) {
      value |= ~std::uint64_t{0} << (8 * size);
    }
    push_whole(std::bit_cast<std::int64_t>(value));
  }
  void push_real() {
    std::uint64_t bits = 0;
    for (const char digit : take(8)) bits = bits << 8U | static_cast<unsigned char>(digit);
    push(Kind::real).real = std::bit_cast<double>(bits);
  }
  void push_tuple(std::size_t size) {
    std::vector<const PickleValue*> items(size);
    for (std::size_t i = size; i-- > 0;) items[i] = pop();
    push(Kind::tuple).items = std::move(items);
  }
  void push_global() {
    const std::string module(line());
    push_text(Kind::global, module + "." + std::string(line()));
  }
  void push_global_of_stack() {
    const PickleValue* const name = pop();
    const PickleValue* const module = pop();
    for (const PickleValue* const part : {module, name}) {
      if (part->kind != Kind::text) fail("names a global by a value that is not a text");
      // An operation of a few bytes copies both texts, so their sizes must have a bound.
      if (part->text.size() > kMostNameBytes) {
        fail(fmt::format("names a global by a text of more than {} bytes", kMostNameBytes));
      }
    }
    push_text(Kind::global, module->text + "." + name->text);
  }

  void remember(std::uint64_t number) { memo_[number] = &top(); }
  void recall(std::uint64_t number) {
    const auto found = memo_.find(number);
    if (found == memo_.end()) fail("recalls a value that it has not stored");
    stack_.push_back(found->second);
  }

  PickleValue& container(Kind kind) {
    PickleValue& value = top();
    if (value.kind != kind) fail("adds to a value that is not a container");
    return value;
  }
  void append(const std::vector<const PickleValue*>& items) {
    PickleValue& list = container(Kind::list);
    list.items.insert(list.items.end(), items.begin(), items.end());
  }
  void set(const std::vector<const PickleValue*>& items) {
    if (items.size() % 2 != 0) fail("has a key without a value");
    PickleValue& dict = container(Kind::dict);
    for (std::size_t i = 0; i < items.size(); i += 2) {
      dict.entries.emplace_back(items[i], items[i + 1]);
    }
  }

  void call() {
    const PickleValue* const arguments = pop();
    const PickleValue* const function = pop();
    if (arguments->kind != Kind::tuple) fail("calls without arguments");
    if (function->kind == Kind::global && function->text == "collections.OrderedDict" &&
        arguments->items.empty()) {
      push(Kind::dict);
      return;
    }
    push(Kind::call).items = {function, arguments};
  }

  // The attributes of an object, such as the _metadata of a state_dict, are not needed.
  void build() { static_cast<void>(pop()); }

  void execute(unsigned char operation) {
    switch (operation) {
      case 0x80:  // PROTO
        static_cast<void>(byte());
        return;
      case 0x95:  // FRAME
        static_cast<void>(whole(8));
        return;
      case '(':
        marks_.push_back(stack_.size());
        return;
      case '0':
        static_cast<void>(pop());
        return;
      case 'N':
        push(Kind::none);
        return;
      case 0x88:
      case 0x89:
        push(Kind::boolean).integer = operation == 0x88 ? 1 : 0;
        return;
      case 'K':
        return push_whole(byte());
      case 'M':
        return push_whole(static_cast<std::int64_t>(whole(2)));
      case 'J':
        return push_long(4);
      case 0x8a:  // LONG1
        return push_long(byte());
      case 'G':
        return push_real();
      case 'X':
      case 'B':
      case 'T':
        return push_text(Kind::text, take(whole(4)));
      case 0x8c:  // SHORT_BINUNICODE
      case 'C':
      case 'U':
        return push_text(Kind::text, take(byte()));
      case ')':
        push(Kind::tuple);
        return;
      case ']':
        push(Kind::list);
        return;
      case '}':
        push(Kind::dict);
        return;
      default:
        execute_on_stack(operation);
    }
  }

  void execute_on_stack(unsigned char operation) {
    switch (operation) {
      case 0x85:
      case 0x86:
      case 0x87:
        return push_tuple(operation - 0x84U);
      case 't': {
        auto items = pop_to_mark();
        push(Kind::tuple).items = std::move(items);
        return;
      }
      case 'a':
        return append({pop()});
      case 'e':
        return append(pop_to_mark());
      case 's': {
        const PickleValue* const value = pop();
        const PickleValue* const key = pop();
        return set({key, value});
      }
      case 'u':
        return set(pop_to_mark());
      case 'q':
        return remember(byte());
      case 'r':
        return remember(whole(4));
      case 0x94:  // MEMOIZE
        return remember(memo_.size());
      case 'h':
        return recall(byte());
      case 'j':
        return recall(whole(4));
      case 'c':
        return push_global();
      case 0x93:
        return push_global_of_stack();
      case 'Q': {
        const PickleValue* const id = pop();
        push(Kind::persistent).items = {id};
        return;
      }
      case 'R':
      case 0x81:  // NEWOBJ
        return call();
      case 'b':
        return build();
      default:
        fail(fmt::format("has the operation {:#04x}", operation));
    }
  }

  std::string_view bytes_;
  const std::string& source_;
  std::string_view accepted_;
  std::deque<PickleValue>& values_;
  std::size_t at_ = 0;
  std::vector<PickleValue*> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, PickleValue*> memo_;
};

Pickle::Pickle(std::string_view bytes, const std::string& source, std::string_view accepted)
    : value_(Machine(bytes, source, accepted, values_).run()) {}

}  // namespace rubato
