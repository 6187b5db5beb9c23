#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rubato::rendezvous_detail {

/// The messages between a client and the server of a store, by turns. The server begins:
///
///     server: challenge(kProtocol, nonce, "token" or "")
///     client: hello(nonce, proof)           proves with both nonces that it knows the token
///     server: welcome(proof)                proves that it knows the token, too; or refused(why)
///     client: get(key, milliseconds)        server: value(text), or missing() after that time
///     client: set(key, text)                server: value("")
///     client: compare_set(key, expected, text)
///                                           server: value(the text that is there afterwards)
///     client: add(key, number)              server: value(the sum)
///
/// The server may answer refused(why) to each of the last four. A message is sent as the number of
/// bytes that follow (4 bytes, the highest first), a byte for its kind, and for each field the
/// number of its bytes and the bytes. Numbers in fields are written in decimal digits.
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

/// Version of the protocol; raised with every change of the above.
inline constexpr std::string_view kProtocol = "rubato store 1";

struct Message {
  Kind kind = Kind::missing;
  std::vector<std::string> fields{};

  friend bool operator==(const Message&, const Message&) = default;
};

/// Largest number of bytes of a message, without the number before it.
inline constexpr std::size_t kMaxMessageBytes = std::size_t{1} << 20U;
/// The same limit before a client has proved that it may speak.
inline constexpr std::size_t kMaxHelloBytes = 256;

/// The bytes of the message as it is sent. Throws Error if it has more than kMaxMessageBytes.
[[nodiscard]] std::string bytes_of(const Message& message);

/// Reads one message, which comes in pieces. It never takes more memory than has come.
class MessageReader {
 public:
  /// Refuses messages of more bytes than `limit`.
  explicit MessageReader(std::size_t limit) : limit_(limit) {}
  void set_limit(std::size_t limit) { limit_ = limit; }

  /// Throws Error as soon as it is known that what has come is not one message within the limit.
  void add(std::string_view bytes);
  /// The message, once it is complete; the next one may come then. Throws Error if the bytes are
  /// not a message.
  [[nodiscard]] std::optional<Message> take();
  /// Number of bytes that have come.
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }

 private:
  std::size_t limit_;
  std::string bytes_;
};

}  // namespace rubato::rendezvous_detail

namespace rubato {

/// Proves that the caller knows `token`: an HMAC-SHA256 of `text` in hexadecimal. Throws Error if
/// it cannot be computed.
[[nodiscard]] std::string signature_of(std::string_view token, std::string_view text);

/// Compares two signatures in a time that does not depend on where they differ.
[[nodiscard]] bool is_same_signature(std::string_view one, std::string_view other);

/// 16 random bytes in hexadecimal, which never repeat in practice. Throws Error if the system has
/// none.
[[nodiscard]] std::string new_nonce();

namespace rendezvous_detail {

/// Proves that a client, or a server, knows the token of a store. The proof covers both nonces, so
/// that neither side can be deceived by a replay from another connection, and the side, so that
/// neither can send back what it was told on this one.
[[nodiscard]] std::string client_proof(std::string_view token, std::string_view server_nonce,
                                       std::string_view client_nonce);
[[nodiscard]] std::string server_proof(std::string_view token, std::string_view server_nonce,
                                       std::string_view client_nonce);

}  // namespace rendezvous_detail

}  // namespace rubato
