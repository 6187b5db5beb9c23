#pragma once

#include <string>
#include <string_view>

namespace rubato {

/// That who gives it knows `token`: an HMAC-SHA256 of `text` in hexadecimal. Throws Error where
/// none can be computed.
[[nodiscard]] std::string signature_of(std::string_view token, std::string_view text);

/// Whether two signatures are the same, in a time that does not depend on where they differ.
[[nodiscard]] bool is_same_signature(std::string_view one, std::string_view other);

/// 16 random bytes in hexadecimal: no two are the same. Throws Error where the system has none.
[[nodiscard]] std::string new_nonce();

namespace rendezvous_detail {

/// That a client, or a server, knows the token of a store. Of both nonces, so that neither side is
/// taken in by what it was told on another connection, and of the side, so that neither can send
/// back what it was told on this one.
[[nodiscard]] std::string client_proof(std::string_view token, std::string_view server_nonce,
                                       std::string_view client_nonce);
[[nodiscard]] std::string server_proof(std::string_view token, std::string_view server_nonce,
                                       std::string_view client_nonce);

}  // namespace rendezvous_detail

}  // namespace rubato
