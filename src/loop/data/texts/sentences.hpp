#pragma once

#include <cstdint>
#include <string>

namespace rubato {

struct SentenceOptions {
  std::uint64_t seed = 0;
  /// Bytes of the training text; the test text has a tenth of them.
  std::int64_t size = 1'000'000;
};

/// The parts of a text of sentences, which share no random number.
enum class SentencePart : std::int64_t { train, test };

/// A text of `size` bytes, whose last sentence may be cut off: a function of its arguments alone,
/// with the same bytes on every machine. The grammar is
///
///     sentence    noun-phrase verb-phrase "." newline
///     noun-phrase determiner [adjective] noun ["that" verb-phrase]
///     verb-phrase transitive noun-phrase | intransitive [adverb]
///
/// A determiner, its noun and the verb of which that is the subject are all singular or all plural,
/// however many words a clause puts between them. Each choice has fixed probabilities, and no
/// sentence can be made in two ways.
[[nodiscard]] std::string sentences(std::uint64_t seed, SentencePart part, std::int64_t size);

/// The entropy of such a text in bits per byte, which no model falls below on average: the entropy
/// of the choices that make a sentence divided by its mean size.
[[nodiscard]] double sentence_bits_per_byte();

}  // namespace rubato
