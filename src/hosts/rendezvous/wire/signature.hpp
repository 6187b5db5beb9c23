#pragma once

#include <string>
#include <string_view>

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
