// kShapes has the number of fields of each kind; parse() refuses other kinds, missing fields and
// bytes that are left over. MessageReader checks the length as soon as its four bytes are there,
// and allocates only for bytes that have come, never for a length that was claimed. Signatures are
// HMAC-SHA256 by OpenSSL, in hexadecimal. A proof covers the version of the protocol, the side, and
// both nonces, one in each line.

#include "protocol.hpp"

#include <array>
#include <cstdint>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <rubato/base/error.hpp>

#include "base/core/throw_error.hpp"

namespace rubato::rendezvous_detail {

namespace {

constexpr std::size_t kNumberBytes = 4;

struct Shape {
  Kind kind;
  std::size_t fields;
};
constexpr std::array<Shape, 10> kShapes{{{Kind::challenge, 3},
                                         {Kind::welcome, 1},
                                         {Kind::value, 1},
                                         {Kind::missing, 0},
                                         {Kind::refused, 1},
                                         {Kind::hello, 2},
                                         {Kind::get, 2},
                                         {Kind::set, 2},
                                         {Kind::compare_set, 3},
                                         {Kind::add, 2}}};

void append_number(std::string& text, std::size_t number) {
  for (unsigned shift = 8 * kNumberBytes; shift > 0;) {
    shift -= 8;
    text += static_cast<char>((number >> shift) & 0xffU);
  }
}

// The number in the first kNumberBytes bytes of `text`, which has at least as many.
std::size_t number_in(std::string_view text) {
  std::size_t number = 0;
  for (const char byte : text.substr(0, kNumberBytes)) {
    number = (number << 8U) | static_cast<unsigned char>(byte);
  }
  return number;
}

[[noreturn]] void refuse() {
  throw Error(
      "received bytes that are not a message of a rendezvous; accepted: hosts of the same version");
}

std::string taken_from(std::string_view& rest) {
  if (rest.size() < kNumberBytes) refuse();
  const std::size_t size = number_in(rest);
  rest.remove_prefix(kNumberBytes);
  if (rest.size() < size) refuse();
  std::string field(rest.substr(0, size));
  rest.remove_prefix(size);
  return field;
}

Message parse(std::string_view body) {
  if (body.empty()) refuse();
  const auto kind = static_cast<Kind>(body.front());
  std::string_view rest = body.substr(1);
  for (const Shape& shape : kShapes) {
    if (shape.kind != kind) continue;
    Message message{.kind = kind};
    while (message.fields.size() < shape.fields) message.fields.push_back(taken_from(rest));
    if (!rest.empty()) refuse();
    return message;
  }
  refuse();
}

}  // namespace

std::string bytes_of(const Message& message) {
  std::string body(1, static_cast<char>(message.kind));
  for (const std::string& field : message.fields) {
    append_number(body, field.size());
    body += field;
  }
  if (body.size() > kMaxMessageBytes) {
    throw_error("a message of {} bytes to a rendezvous; accepted: up to {}", body.size(),
                kMaxMessageBytes);
  }
  std::string bytes;
  append_number(bytes, body.size());
  return bytes + body;
}

void MessageReader::add(std::string_view bytes) {
  bytes_ += bytes;
  if (bytes_.size() < kNumberBytes) return;
  const std::size_t size = number_in(bytes_);
  // A client waits for the answer before it asks again: nothing may follow a message.
  if (size > limit_ || bytes_.size() > kNumberBytes + size) refuse();
}

std::optional<Message> MessageReader::take() {
  if (bytes_.size() < kNumberBytes || bytes_.size() < kNumberBytes + number_in(bytes_)) {
    return std::nullopt;
  }
  Message message = parse(std::string_view(bytes_).substr(kNumberBytes));
  bytes_ = {};
  return message;
}

}  // namespace rubato::rendezvous_detail

namespace rubato {

namespace {

std::string hex(std::span<const std::uint8_t> bytes) {
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

}  // namespace

std::string signature_of(std::string_view token, std::string_view text) {
  std::array<std::uint8_t, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  const auto* const bytes =
      static_cast<const unsigned char*>(static_cast<const void*>(text.data()));
  if (HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()), bytes, text.size(),
           digest.data(), &size) == nullptr) {
    throw Error("cannot compute an HMAC");
  }
  return hex(std::span(digest).first(size));
}

bool is_same_signature(std::string_view one, std::string_view other) {
  return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

std::string new_nonce() {
  std::array<std::uint8_t, 16> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    throw Error("cannot get random numbers from the operating system");
  }
  return hex(bytes);
}

namespace rendezvous_detail {

namespace {

std::string proof_of(std::string_view side, std::string_view token, std::string_view server_nonce,
                     std::string_view client_nonce) {
  return signature_of(token,
                      fmt::format("{}\n{}\n{}\n{}", kProtocol, side, server_nonce, client_nonce));
}

}  // namespace

std::string client_proof(std::string_view token, std::string_view server_nonce,
                         std::string_view client_nonce) {
  return proof_of("client", token, server_nonce, client_nonce);
}

std::string server_proof(std::string_view token, std::string_view server_nonce,
                         std::string_view client_nonce) {
  return proof_of("server", token, server_nonce, client_nonce);
}

}  // namespace rendezvous_detail

}  // namespace rubato
