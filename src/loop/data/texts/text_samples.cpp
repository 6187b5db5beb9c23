#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/core/limits.hpp"
#include "base/core/text/csv.hpp"
#include "base/core/throw_error.hpp"
#include "loop/data/data_files.hpp"
#include "loop/data/input_file.hpp"

namespace rubato {

namespace {

// Makes pieces of `length` tokens, each with the tokens that follow.
SampleSet pieces_of(std::string_view text, const TextEncoding& encoding, std::int64_t length,
                    const std::string& source) {
  const auto tokens =
      std::make_shared<const std::vector<std::int32_t>>(encoded(text, encoding, source));
  const std::int64_t count = std::ssize(*tokens);
  if (count <= length) {
    throw_error(
        "{}: {} {} make no sample; accepted: at least {}, for pieces of {} and the one that "
        "follows",
        source, count, encoding.tokens == TextTokens::characters ? "characters" : "tokens",
        length + 1, length);
  }
  const std::int64_t pieces = (count - 1) / length;
  const auto* const begin = reinterpret_cast<const char*>(tokens->data());
  const std::size_t stride = static_cast<std::size_t>(length) * sizeof(std::int32_t);
  const auto rows = [&](const char* first) {
    return SampleRows(ElementType::i32, {length}, stride, {{.begin = first, .count = pieces}},
                      tokens);
  };
  return {.inputs = rows(begin), .targets = rows(begin + sizeof(std::int32_t))};
}

// A mapped text; one in characters is checked for other encodings.
std::shared_ptr<const MappedFile> open_text(const std::filesystem::path& file, TextTokens tokens) {
  const bool in_utf8 = tokens == TextTokens::characters;
  auto mapped = MappedFile::open(file, in_utf8 ? "a text in UTF-8" : "a text");
  if (in_utf8) {
    detail::require_no_utf16(mapped->bytes(), file.string());
    refuse_binary(mapped->bytes(), file, "a text in UTF-8, or any file with tokens=bytes");
  }
  // There are at most as many tokens as bytes.
  require_memory(static_cast<double>(mapped->bytes().size()) * sizeof(std::int32_t),
                 fmt::format("the tokens of {} need", file.string()), "a shorter text needs less");
  return mapped;
}

DataSets data_of(std::string_view text, const TextOptions& options, const std::string& source) {
  const auto encoding = std::make_shared<const TextEncoding>(text_encoding(text, options, source));
  const std::int64_t tokens = std::ssize(token_bytes(*encoding));
  return {.train = pieces_of(text, *encoding, options.length, source),
          .inputs = InputKind::tokens,
          .classes = tokens,
          .vocabulary = tokens,
          .noun = "pieces",
          .text = encoding};
}

std::string test_sentences(const SentenceOptions& options) {
  constexpr std::int64_t kShare = 10;
  return sentences(options.seed, SentencePart::test, options.size / kShare);
}

constexpr const char* kSentences = "the test sentences";

}  // namespace

DataSets read_text_samples(const std::filesystem::path& file, const TextOptions& options) {
  return data_of(open_text(file, options.tokens)->bytes(), options, file.string());
}

DataSets make_sentence_samples(const SentenceOptions& made, const TextOptions& options) {
  DataSets data =
      data_of(sentences(made.seed, SentencePart::train, made.size), options, "the sentences");
  data.test = pieces_of(test_sentences(made), *data.text, options.length, kSentences);
  data.notes.push_back(fmt::format("{:.3f} bits per byte at best", sentence_bits_per_byte()));
  return data;
}

double bytes_per_target(const SampleSet& samples, const TextEncoding& encoding) {
  const std::vector<std::int32_t> sizes = token_bytes(encoding);
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(samples.targets.elements()));
  std::int64_t bytes = 0;
  for (std::int64_t i = 0; i < samples.size(); ++i) {
    read_numbers(samples.targets.type(), samples.target(i), tokens.data());
    for (const std::int64_t token : tokens) bytes += sizes[static_cast<std::size_t>(token)];
  }
  return static_cast<double>(bytes) /
         static_cast<double>(samples.size() * samples.targets.elements());
}

SampleSet read_new_text_samples(const std::filesystem::path& file, const DataRecord& record) {
  return pieces_of(open_text(file, record.text->tokens)->bytes(), *record.text,
                   record.shape.front(), file.string());
}

SampleSet make_new_sentence_samples(const SentenceOptions& made, const DataRecord& record) {
  return pieces_of(test_sentences(made), *record.text, record.shape.front(), kSentences);
}

}  // namespace rubato
