// learn_pairs() does not count in the text but in its different words, each with the number of
// times it occurs. Joining a pair changes only the words that have it (Found::in), and a priority
// queue finds the next pair: an entry whose count is out of date goes back into the queue with its
// present count when it reaches the front. In each word, PairEncoder joins the pair that was
// learned first until no pair is left, and encoded_pairs() remembers the tokens of each different
// word. Results do not depend on the order of the hash tables, because the queue decides between
// equal counts by the pairs themselves.

#include "text_encoding.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <queue>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/core/text/csv.hpp"
#include "base/core/throw_error.hpp"
#include "loop/data/tables/text.hpp"

namespace rubato {

namespace {

// Joined texts may contain one in their middle, too.
constexpr char32_t kByteOrderMark = 0xFEFF;

// Calls `use` with each character of a text except byte order marks.
template <class Use>
void for_each_character(std::string_view text, const std::string& source, const Use& use) {
  for (std::string_view rest = text; !rest.empty();) {
    const auto character = take_character(rest);
    if (!character) {
      throw_error("{}: byte {} belongs to no character; accepted: a text in UTF-8", source,
                  text.size() - rest.size() + 1);
    }
    if (*character != kByteOrderMark) use(*character);
  }
}

std::string alphabet_of(std::string_view text, const std::string& source) {
  std::set<char32_t> characters;
  for_each_character(text, source, [&](char32_t character) { characters.insert(character); });
  std::string alphabet;
  for (const char32_t character : characters) alphabet += utf8_of(character);
  return alphabet;
}

std::vector<std::int32_t> encoded_characters(std::string_view text, const std::string& alphabet,
                                             const std::string& source) {
  std::unordered_map<char32_t, std::int32_t> token_of;
  for_each_character(alphabet, "the alphabet", [&](char32_t character) {
    token_of.emplace(character, static_cast<std::int32_t>(token_of.size()));
  });
  std::vector<std::int32_t> tokens;
  tokens.reserve(text.size());
  for_each_character(text, source, [&](char32_t character) {
    const auto token = token_of.find(character);
    if (token == token_of.end()) {
      throw_error("{}: character {} is {}; accepted: characters of the text that was trained on",
                  source, tokens.size() + 1, detail::excerpt(utf8_of(character)));
    }
    tokens.push_back(token->second);
  });
  return tokens;
}

std::vector<std::int32_t> bytes_of(std::string_view text) {
  std::vector<std::int32_t> tokens(text.size());
  std::ranges::transform(text, tokens.begin(),
                         [](char byte) { return static_cast<unsigned char>(byte); });
  return tokens;
}

bool is_white(char byte) {
  return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

// Removes the first word of a text that is not empty, and returns it.
std::string_view take_word(std::string_view& text) {
  const std::size_t most = std::min<std::size_t>(text.size(), kMostWordBytes);
  std::size_t size = 1;
  while (size < most && (!is_white(text[size]) || is_white(text[size - 1]))) ++size;
  const std::string_view word = text.substr(0, size);
  text.remove_prefix(size);
  return word;
}

std::uint64_t key_of(const TokenPair& pair) {
  return static_cast<std::uint64_t>(pair[0]) << 32U | static_cast<std::uint32_t>(pair[1]);
}

// Replaces all occurrences of the pair, from the left.
void join(const TokenPair& pair, std::int32_t token, std::vector<std::int32_t>& tokens) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const bool found = i + 1 < tokens.size() && tokens[i] == pair[0] && tokens[i + 1] == pair[1];
    tokens[end++] = found ? token : tokens[i];
    if (found) ++i;
  }
  tokens.resize(end);
}

// The pairs of neighbouring tokens in the words of a text.
class PairCounts {
 public:
  explicit PairCounts(std::string_view text) {
    std::unordered_map<std::string_view, std::int64_t> counts;
    while (!text.empty()) ++counts[take_word(text)];
    words_.reserve(counts.size());
    for (const auto& [word, count] : counts) words_.push_back({bytes_of(word), count});
    for (std::size_t i = 0; i < words_.size(); ++i) {
      add(words_[i], 1);
      for_each_pair(words_[i],
                    [&](const TokenPair& pair) { found_[key_of(pair)].in.push_back(i); });
    }
    for (const auto& [key, found] : found_) push(key);
  }

  // Makes the most frequent pair a token and returns it; empty if none occurs twice.
  std::optional<TokenPair> join_most_frequent(std::int32_t token) {
    while (!queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      const std::int64_t count = found_[key_of(best.pair)].count;
      if (count == best.count) {
        join_everywhere(best.pair, token);
        return best.pair;
      }
      // Counts only fall until a pair is joined, so no candidate stands too low in the queue.
      push(key_of(best.pair));
    }
    return std::nullopt;
  }

 private:
  struct Word {
    std::vector<std::int32_t> tokens;
    std::int64_t count = 0;
  };
  struct Found {
    std::int64_t count = 0;
    // The words that have the pair, and some that had it; a word may be there twice.
    std::vector<std::size_t> in{};
  };
  struct Candidate {
    std::int64_t count = 0;
    TokenPair pair{};

    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : other.pair < pair;
    }
  };

  template <class Use>
  static void for_each_pair(const Word& word, const Use& use) {
    for (std::size_t i = 0; i + 1 < word.tokens.size(); ++i) {
      use(TokenPair{word.tokens[i], word.tokens[i + 1]});
    }
  }

  void add(const Word& word, std::int64_t sign) {
    for_each_pair(word,
                  [&](const TokenPair& pair) { found_[key_of(pair)].count += sign * word.count; });
  }

  void push(std::uint64_t key) {
    const std::int64_t count = found_[key].count;
    if (count < 2) return;
    queue_.push({count, {static_cast<std::int32_t>(key >> 32U), static_cast<std::int32_t>(key)}});
  }

  void join_everywhere(const TokenPair& pair, std::int32_t token) {
    std::vector<std::size_t> in = std::exchange(found_[key_of(pair)].in, {});
    std::ranges::sort(in);
    in.erase(std::unique(in.begin(), in.end()), in.end());
    std::set<std::uint64_t> fresh;
    for (const std::size_t i : in) {
      Word& word = words_[i];
      add(word, -1);
      join(pair, token, word.tokens);
      add(word, 1);
      for_each_pair(word, [&](const TokenPair& other) {
        if (other[0] != token && other[1] != token) return;
        found_[key_of(other)].in.push_back(i);
        fresh.insert(key_of(other));
      });
    }
    for (const std::uint64_t key : fresh) push(key);
  }

  std::vector<Word> words_;
  std::unordered_map<std::uint64_t, Found> found_;
  std::priority_queue<Candidate> queue_;
};

// Joins the pairs of a vocabulary in words.
class PairEncoder {
 public:
  explicit PairEncoder(const std::vector<TokenPair>& pairs) : pairs_(pairs) {
    for (std::size_t i = 0; i < pairs.size(); ++i) ranks_.emplace(key_of(pairs[i]), i);
  }

  // The same as joining all pairs in their order: joining one makes no pair that precedes it.
  [[nodiscard]] std::vector<std::int32_t> tokens_of(std::string_view word) const {
    std::vector<std::int32_t> tokens = bytes_of(word);
    while (true) {
      std::size_t first = pairs_.size();
      for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
        const auto found = ranks_.find(key_of({tokens[i], tokens[i + 1]}));
        if (found != ranks_.end()) first = std::min(first, found->second);
      }
      if (first == pairs_.size()) return tokens;
      join(pairs_[first], static_cast<std::int32_t>(kByteTokens) + static_cast<std::int32_t>(first),
           tokens);
    }
  }

 private:
  const std::vector<TokenPair>& pairs_;
  std::unordered_map<std::uint64_t, std::size_t> ranks_;
};

std::vector<std::int32_t> encoded_pairs(std::string_view text,
                                        const std::vector<TokenPair>& pairs) {
  const PairEncoder encoder(pairs);
  std::unordered_map<std::string_view, std::vector<std::int32_t>> known;
  std::vector<std::int32_t> tokens;
  while (!text.empty()) {
    const std::string_view word = take_word(text);
    const auto [found, is_new] = known.try_emplace(word);
    if (is_new) found->second = encoder.tokens_of(word);
    tokens.insert(tokens.end(), found->second.begin(), found->second.end());
  }
  return tokens;
}

}  // namespace

std::vector<TokenPair> learn_pairs(std::string_view text, std::int64_t count) {
  constexpr std::size_t kCountedBytes = std::size_t{16} << 20U;
  PairCounts counts(text.substr(0, kCountedBytes));
  std::vector<TokenPair> pairs;
  while (std::ssize(pairs) < count) {
    const auto pair = counts.join_most_frequent(static_cast<std::int32_t>(kByteTokens) +
                                                static_cast<std::int32_t>(pairs.size()));
    if (!pair) break;
    pairs.push_back(*pair);
  }
  return pairs;
}

TextEncoding text_encoding(std::string_view text, const TextOptions& options,
                           const std::string& source) {
  TextEncoding encoding{.tokens = options.tokens};
  if (options.tokens == TextTokens::characters) encoding.alphabet = alphabet_of(text, source);
  if (options.tokens == TextTokens::pairs) {
    encoding.pairs = learn_pairs(text, options.vocabulary - kByteTokens);
  }
  return encoding;
}

std::vector<std::int32_t> encoded(std::string_view text, const TextEncoding& encoding,
                                  const std::string& source) {
  switch (encoding.tokens) {
    case TextTokens::characters:
      return encoded_characters(text, encoding.alphabet, source);
    case TextTokens::bytes:
      return bytes_of(text);
    case TextTokens::pairs:
      break;
  }
  return encoded_pairs(text, encoding.pairs);
}

std::vector<std::int32_t> token_bytes(const TextEncoding& encoding) {
  std::vector<std::int32_t> sizes;
  if (encoding.tokens == TextTokens::characters) {
    for_each_character(encoding.alphabet, "the alphabet", [&](char32_t character) {
      sizes.push_back(static_cast<std::int32_t>(utf8_of(character).size()));
    });
    return sizes;
  }
  sizes.assign(kByteTokens, 1);
  for (const auto& [first, second] : encoding.pairs) {
    sizes.push_back(sizes[static_cast<std::size_t>(first)] +
                    sizes[static_cast<std::size_t>(second)]);
  }
  return sizes;
}

}  // namespace rubato
