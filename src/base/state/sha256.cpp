#include "sha256.hpp"

#include <array>
#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>

#include "base/core/check.hpp"
#include "base/core/file.hpp"
#include "base/core/throw_error.hpp"

namespace rubato {

struct Sha256::Context {
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> evp{EVP_MD_CTX_new()};
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  RUBATO_CHECK(EVP_DigestInit_ex(context_->evp.get(), EVP_sha256(), nullptr) == 1,
               "SHA-256 is available");
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::add(const void* bytes, std::size_t size) {
  RUBATO_CHECK(EVP_DigestUpdate(context_->evp.get(), bytes, size) == 1,
               "SHA-256 of memory cannot fail");
}

Sha256::Digest Sha256::digest() {
  Digest digest{};
  RUBATO_CHECK(EVP_DigestFinal_ex(context_->evp.get(), digest.data(), nullptr) == 1,
               "SHA-256 of memory cannot fail");
  return digest;
}

std::string Sha256::hex() {
  return fmt::format("{:02x}", fmt::join(digest(), ""));
}

Sha256::Digest Sha256::digest_of(std::string_view bytes) {
  Sha256 sha;
  sha.add(bytes);
  return sha.digest();
}

std::string Sha256::hex_of(std::string_view bytes) {
  Sha256 sha;
  sha.add(bytes);
  return sha.hex();
}

std::string Sha256::hex_of_file(const std::filesystem::path& file) {
  constexpr std::size_t kPiece = std::size_t{1} << 16U;
  require_regular_file(file);
  std::ifstream in(file, std::ios::binary);
  Sha256 sha;
  std::array<char, kPiece> piece{};
  while (in.read(piece.data(), piece.size()) || in.gcount() > 0) {
    sha.add(piece.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (!in.eof()) throw_error("{}: cannot be read", file.string());
  return sha.hex();
}

}  // namespace rubato
