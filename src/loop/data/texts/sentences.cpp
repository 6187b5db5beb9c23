// The text comes from a probabilistic context-free grammar, whose rules add_noun_phrase() and
// add_verb_phrase() expand recursively; a noun phrase contains another one with a probability of
// 1/16, so the recursion ends. Each sentence draws from a stream of its own, whose seed is hashed
// from the seed of the text, the part and the number of the sentence. sentence_bits_per_byte() does
// not sample: it solves the two linear equations that the rules give for the expected entropy and
// the expected size of a sentence. It repeats every choice of the functions that draw, so both must
// be changed together.

#include "sentences.hpp"

#include <bit>
#include <cstddef>
#include <numbers>
#include <span>
#include <string_view>

#include "base/core/portable_math.hpp"

namespace rubato {

namespace {

// Random numbers of a sentence. All probabilities are multiples of a power of two, so that no draw
// is biased.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}

  // An integer 0 <= k < count; `count` is a power of two.
  std::uint64_t below(std::uint64_t count) { return mixed(state_++) & (count - 1); }

 private:
  std::uint64_t state_;
};

// A word that is drawn as often as its weight says; the weights of a choice sum to a power of two.
struct Word {
  std::string_view text;
  std::uint64_t weight;
};

constexpr Word kSingular[] = {{"the", 4}, {"a", 2}, {"this", 1}, {"every", 1}};
constexpr Word kPlural[] = {{"the", 4}, {"some", 2}, {"these", 1}, {"all", 1}};
constexpr Word kAdjectives[] = {{"small", 4}, {"big", 4},   {"young", 2}, {"tall", 2},
                                {"quiet", 1}, {"happy", 1}, {"green", 1}, {"red", 1}};
constexpr Word kNouns[] = {{"dog", 4},     {"cat", 4},    {"farmer", 4}, {"girl", 4},
                           {"bird", 2},    {"horse", 2},  {"king", 2},   {"teacher", 2},
                           {"garden", 1},  {"river", 1},  {"stone", 1},  {"letter", 1},
                           {"picture", 1}, {"doctor", 1}, {"clock", 1},  {"village", 1}};
constexpr Word kTransitive[] = {{"see", 4},  {"like", 4}, {"follow", 2}, {"find", 2},
                                {"help", 1}, {"call", 1}, {"know", 1},   {"hear", 1}};
constexpr Word kIntransitive[] = {{"sleep", 4}, {"sing", 4},  {"run", 2},  {"wait", 2},
                                  {"laugh", 1}, {"dance", 1}, {"walk", 1}, {"smile", 1}};
constexpr Word kAdverbs[] = {{"here", 1}, {"today", 1}, {"often", 1}, {"slowly", 1}};

// Denominators of the probabilities of an adjective, of a clause with "that" and of an adverb.
constexpr std::uint64_t kAdjective = 4;
constexpr std::uint64_t kClause = 8;
constexpr std::uint64_t kAdverb = 4;
constexpr std::string_view kThat = " that ";
constexpr std::string_view kFullStop = ".\n";

using Words = std::span<const Word>;

constexpr std::uint64_t weight_of(Words words) {
  std::uint64_t sum = 0;
  for (const Word& word : words) sum += word.weight;
  return sum;
}

static_assert(std::has_single_bit(weight_of(kSingular)) &&
              std::has_single_bit(weight_of(kPlural)) &&
              std::has_single_bit(weight_of(kAdjectives)) &&
              std::has_single_bit(weight_of(kNouns)) &&
              std::has_single_bit(weight_of(kTransitive)) &&
              std::has_single_bit(weight_of(kIntransitive)) &&
              std::has_single_bit(weight_of(kAdverbs)));

std::string_view draw(Words words, Draws& draws) {
  std::uint64_t left = draws.below(weight_of(words));
  for (const Word& word : words) {
    if (left < word.weight) return word.text;
    left -= word.weight;
  }
  return {};
}

void add_verb_phrase(std::string& text, bool plural, Draws& draws);

// Returns true for a plural.
bool add_noun_phrase(std::string& text, Draws& draws) {
  const bool plural = draws.below(2) == 1;
  text += draw(plural ? Words(kPlural) : Words(kSingular), draws);
  text += ' ';
  if (draws.below(kAdjective) == 0) {
    text += draw(kAdjectives, draws);
    text += ' ';
  }
  text += draw(kNouns, draws);
  if (plural) text += 's';
  if (draws.below(kClause) == 0) {
    text += kThat;
    add_verb_phrase(text, plural, draws);
  }
  return plural;
}

void add_verb_phrase(std::string& text, bool plural, Draws& draws) {
  const bool transitive = draws.below(2) == 1;
  text += draw(transitive ? Words(kTransitive) : Words(kIntransitive), draws);
  if (!plural) text += 's';
  if (transitive) {
    text += ' ';
    static_cast<void>(add_noun_phrase(text, draws));
  } else if (draws.below(kAdverb) == 0) {
    text += ' ';
    text += draw(kAdverbs, draws);
  }
}

// The entropy of a choice with probabilities weight / sum, and the mean size of the word.
struct Mean {
  double bits = 0;
  double bytes = 0;
};

Mean mean_of(Words words) {
  const auto sum = static_cast<double>(weight_of(words));
  Mean mean;
  for (const Word& word : words) {
    const double share = static_cast<double>(word.weight) / sum;
    mean.bits -= share * exact::log(share) / std::numbers::ln2;
    mean.bytes += share * static_cast<double>(word.text.size());
  }
  return mean;
}

double bits_of_share(std::uint64_t denominator) {
  const Word both[] = {{"", 1}, {"", denominator - 1}};
  return mean_of(both).bits;
}

}  // namespace

std::string sentences(std::uint64_t seed, SentencePart part, std::int64_t size) {
  std::string text;
  for (std::int64_t i = 0; static_cast<std::int64_t>(text.size()) < size; ++i) {
    Draws draws(seed_of(seed, {static_cast<std::int64_t>(part), i}));
    const bool plural = add_noun_phrase(text, draws);
    text += ' ';
    add_verb_phrase(text, plural, draws);
    text += kFullStop;
  }
  text.resize(static_cast<std::size_t>(size));
  return text;
}

// With n and v for the noun and the verb phrase, a and b for what they have without one another:
//
//     n = a + v / kClause,   v = b + n / 2
double sentence_bits_per_byte() {
  constexpr double kHalf = 0.5;
  constexpr double kClauseShare = 1.0 / kClause;
  constexpr double kAdjectiveShare = 1.0 / kAdjective;
  constexpr double kAdverbShare = 1.0 / kAdverb;
  const auto sentence = [](double noun, double verb, double end) {
    const double n = (noun + kClauseShare * verb) / (1 - kHalf * kClauseShare);
    return n + verb + kHalf * n + end;
  };
  const Mean singular = mean_of(kSingular);
  const Mean plural = mean_of(kPlural);
  const Mean adjective = mean_of(kAdjectives);
  const Mean noun = mean_of(kNouns);
  const Mean transitive = mean_of(kTransitive);
  const Mean intransitive = mean_of(kIntransitive);
  const Mean adverb = mean_of(kAdverbs);
  // A number is one bit, and an s in half of all nouns and verbs.
  const double bits =
      sentence(1 + kHalf * (singular.bits + plural.bits) + bits_of_share(kAdjective) +
                   kAdjectiveShare * adjective.bits + noun.bits + bits_of_share(kClause),
               1 + kHalf * (transitive.bits + intransitive.bits + bits_of_share(kAdverb) +
                            kAdverbShare * adverb.bits),
               0);
  const double bytes = sentence(
      kHalf * (singular.bytes + plural.bytes) + 1 + kAdjectiveShare * (adjective.bytes + 1) +
          noun.bytes + kHalf + kClauseShare * static_cast<double>(kThat.size()),
      kHalf +
          kHalf * (transitive.bytes + 1 + intransitive.bytes + kAdverbShare * (1 + adverb.bytes)),
      1 + static_cast<double>(kFullStop.size()));
  return bits / bytes;
}

}  // namespace rubato
