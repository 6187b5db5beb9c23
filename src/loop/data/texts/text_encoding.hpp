#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/parse.hpp>

namespace rubato {

/// The units of a text that are its tokens.
enum class TextTokens {
  characters,  ///< of UTF-8, numbered in the order of their code points
  bytes,       ///< all 256
  pairs,       ///< the bytes, and frequent pairs of tokens
};

inline constexpr std::array<Choice<TextTokens>, 3> kTextTokens{
    {{TextTokens::characters, "characters"},
     {TextTokens::bytes, "bytes"},
     {TextTokens::pairs, "pairs"}}};

/// Two tokens that together are another one.
using TokenPair = std::array<std::int32_t, 2>;

inline constexpr std::int64_t kByteTokens = 256;
/// The largest size of a token of pairs in bytes, which is that of the words in which they are.
inline constexpr std::int32_t kMostWordBytes = 64;

struct TextOptions {
  /// Tokens in a sample.
  std::int64_t length = 64;
  TextTokens tokens = TextTokens::characters;
  /// The number of tokens at most, if they are pairs.
  std::int64_t vocabulary = 512;
};

/// The tokens of a text.
struct TextEncoding {
  TextTokens tokens = TextTokens::characters;
  /// The characters in the order of their tokens, in UTF-8.
  std::string alphabet{};
  /// Pair i is the token kByteTokens + i.
  std::vector<TokenPair> pairs{};
};

/// Makes the encoding of a text. Throws Error for characters of a text that is not in UTF-8;
/// messages name it as `source`.
[[nodiscard]] TextEncoding text_encoding(std::string_view text, const TextOptions& options,
                                         const std::string& source);

/// The byte-pair vocabulary of a text (Gage 1994; Sennrich, Haddow and Birch 2016, algorithm 1),
/// `count` pairs at most. The text is cut into words, and pairs do not cross their ends: a word
/// ends before a white-space byte that follows one of another kind, and after 64 bytes. Then, again
/// and again, the pair of neighbouring tokens that occurs most often becomes a token, of several
/// the smallest one, and all its occurrences in a word are joined from the left. Occurrences that
/// overlap, as in "aaa", all count. It ends when no pair occurs twice. Only the first 16 MiB of the
/// text are counted.
[[nodiscard]] std::vector<TokenPair> learn_pairs(std::string_view text, std::int64_t count);

/// The tokens of a text. Throws Error for a character that is not in the alphabet.
[[nodiscard]] std::vector<std::int32_t> encoded(std::string_view text, const TextEncoding& encoding,
                                                const std::string& source);

/// The size of each token in bytes: one for each token of the encoding.
[[nodiscard]] std::vector<std::int32_t> token_bytes(const TextEncoding& encoding);

}  // namespace rubato
