#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rubato::rendezvous_detail {

/// What a client and the server of a store say to each other, by turns. The server begins:
///
///     server: challenge(kProtocol, nonce, "token" or "")
///     client: hello(nonce, proof)           that it knows the token, by both nonces
///     server: welcome(proof)                that it knows the token, too; or refused(why)
///     client: get(key, milliseconds)        server: value(text), or missing() when they have
///     passed client: set(key, text)                server: value("") client: compare_set(key,
///     expected, text)  server: value(what is there then) client: add(key, number) server:
///     value(the sum)
///
/// To each of the last four the server may answer refused(why). A message is sent as the number of
/// bytes that follow (4 bytes, the highest first), a byte for its kind, and for each field the
/// number of its bytes and those. Numbers in fields are written in decimal digits.
enum class Kind : std::uint8_t {
  challenge = 1,
  welcome = 2,
  value = 3,
  missing = 4,
  refused = 5,
  hello = 16,
  get = 17,
  set = 18,
  compare_set = 19,
  add = 20,
};

/// Raised with every change of the above.
inline constexpr std::string_view kProtocol = "rubato store 1";

struct Message {
  Kind kind = Kind::missing;
  std::vector<std::string> fields{};

  friend bool operator==(const Message&, const Message&) = default;
};

/// No message has more bytes, the number before it not counted.
inline constexpr std::size_t kMaxMessageBytes = std::size_t{1} << 20U;
/// Before a client has proved that it may speak.
inline constexpr std::size_t kMaxHelloBytes = 256;

/// As it is sent. Throws Error where it has more than kMaxMessageBytes.
[[nodiscard]] std::string bytes_of(const Message& message);

/// Reads one message, which comes in pieces. It never takes more memory than has come.
class MessageReader {
 public:
  /// Refuses a message of more bytes.
  explicit MessageReader(std::size_t limit) : limit_(limit) {}
  void set_limit(std::size_t limit) { limit_ = limit; }

  /// Throws Error as soon as it is known that what has come is not one message within the limit.
  void add(std::string_view bytes);
  /// The message, once it is complete; the next one may come then. Throws Error where the bytes are
  /// none.
  [[nodiscard]] std::optional<Message> take();
  /// How much of it has come.
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }

 private:
  std::size_t limit_;
  std::string bytes_;
};

}  // namespace rubato::rendezvous_detail
