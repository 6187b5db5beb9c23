#include "security_policy.hpp"

#include <array>

#include <fmt/format.h>
#include <openssl/evp.h>

#include "base/state/sha256.hpp"

namespace rubato::page {

namespace {

// The source expressions 'sha256-BASE64' of the texts, each after a space.
std::string sources_of(std::span<const std::string_view> texts) {
  std::string sources;
  for (const std::string_view text : texts) {
    const Sha256::Digest digest = Sha256::digest_of(text);
    // Base64 has four letters for three bytes; EVP_EncodeBlock() adds a zero at the end.
    std::array<unsigned char, (digest.size() + 2) / 3 * 4 + 1> base64{};
    const int length =
        EVP_EncodeBlock(base64.data(), digest.data(), static_cast<int>(digest.size()));
    const std::string letters(base64.begin(), base64.begin() + length);
    sources += fmt::format(" 'sha256-{}'", letters);
  }
  return sources;
}

}  // namespace

std::string security_policy(std::span<const std::string_view> scripts,
                            std::span<const std::string_view> styles) {
  return fmt::format(
      "default-src 'none'; script-src{}; style-src{}; base-uri 'none'; form-action 'none'",
      sources_of(scripts), sources_of(styles));
}

}  // namespace rubato::page
