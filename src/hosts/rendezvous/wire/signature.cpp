#include "signature.hpp"

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

#include "message.hpp"

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
