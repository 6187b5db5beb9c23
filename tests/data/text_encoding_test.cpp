// The tokens of texts: bytes, byte pairs, and the built-in sentences.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/base/digest.hpp>

#include "data/input_of.hpp"
#include "loop/data/data_files.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using test::tokens_of;

constexpr TextOptions kPairs{.length = 3, .tokens = TextTokens::pairs, .vocabulary = 259};

// Counted by hand: "ab" is in both words of 3, the others are once in each of their words.
TEST(LearnPairs, JoinsTheMostFrequentPairFirst) {
  // Words "abc", " abd" and " abc": ab 3, then (ab)c 2 and " "(ab) 2, of which the smaller begins
  // with the space, 32. Then ( ab)c and ( ab)d, once each, and (ab)c, once.
  EXPECT_THAT(learn_pairs("abc abd abc", 10),
              ElementsAre(TokenPair{'a', 'b'}, TokenPair{' ', 256}));
  EXPECT_THAT(learn_pairs("abc abd abc", 1), ElementsAre(TokenPair{'a', 'b'}));
  EXPECT_THAT(learn_pairs("", 10), ElementsAre());
}

TEST(LearnPairs, BreaksTiesByTheSmallestPair) {
  EXPECT_THAT(learn_pairs("dc ba dc ba", 2), ElementsAre(TokenPair{' ', 'b'}, TokenPair{'d', 'c'}))
      << "' b', 'ba' and 'dc' occur twice each; then 'dc', and ' b' before 'a'";
}

// The pairs of "aaaa" are three, and joined from the left they are two.
TEST(LearnPairs, CountsPairsThatOverlap) {
  EXPECT_THAT(learn_pairs("aaaa", 10), ElementsAre(TokenPair{'a', 'a'}));
  EXPECT_THAT(learn_pairs("aaaaa", 10), ElementsAre(TokenPair{'a', 'a'}));
  EXPECT_THAT(encoded("aaaaa", {.tokens = TextTokens::pairs, .pairs = {{'a', 'a'}}}, "text"),
              ElementsAre(256, 256, 'a'));
}

TEST(LearnPairs, DoNotCrossTheEndsOfWords) {
  const std::string word(64, 'x');
  EXPECT_THAT(encoded("x x", {.tokens = TextTokens::pairs, .pairs = {{'x', ' '}}}, "text"),
              ElementsAre('x', ' ', 'x'));
  EXPECT_THAT(
      encoded("\n\n x", {.tokens = TextTokens::pairs, .pairs = {{'\n', '\n'}, {256, ' '}}}, "text"),
      ElementsAre(257, 'x'))
      << "white space belongs to the word after it";
  const std::vector<std::int32_t> tokens = encoded(
      word + "yx", {.tokens = TextTokens::pairs, .pairs = {{'x', 'y'}, {'y', 'x'}}}, "text");
  EXPECT_EQ(tokens.size(), 65U);
  EXPECT_EQ(tokens.back(), 257) << "a word ends after 64 bytes";
}

// Repeats the definition: counts all pairs anew for each token, and joins them in all words.
std::pair<std::vector<TokenPair>, std::vector<std::int32_t>> pairs_by_definition(
    const std::vector<std::string>& words, std::size_t most) {
  std::vector<std::vector<std::int32_t>> all;
  all.reserve(words.size());
  for (const std::string& word : words) all.emplace_back(word.begin(), word.end());
  std::vector<TokenPair> pairs;
  while (pairs.size() < most) {
    std::map<TokenPair, int> counts;
    for (const auto& word : all) {
      for (std::size_t i = 1; i < word.size(); ++i) ++counts[{word[i - 1], word[i]}];
    }
    const auto best = std::ranges::max_element(
        counts, [](const auto& a, const auto& b) { return a.second < b.second; });
    if (best == counts.end() || best->second < 2) break;
    pairs.push_back(best->first);
    for (auto& word : all) {
      std::vector<std::int32_t> joined;
      for (std::size_t i = 0; i < word.size(); ++i) {
        const bool found = i + 1 < word.size() && TokenPair{word[i], word[i + 1]} == best->first;
        joined.push_back(found ? static_cast<std::int32_t>(255 + pairs.size()) : word[i]);
        if (found) ++i;
      }
      word = joined;
    }
  }
  std::vector<std::int32_t> tokens;
  for (const auto& word : all) tokens.insert(tokens.end(), word.begin(), word.end());
  return {pairs, tokens};
}

TEST(LearnPairs, AreThoseOfTheDefinition) {
  const std::string text = sentences(3, SentencePart::train, 5000) + "aaaa bbbb abab aaab";
  std::vector<std::string> words{""};
  for (const char byte : text) {
    const bool white = byte == ' ' || byte == '\n';
    if (white && words.back().find_last_not_of(" \n") != std::string::npos) words.emplace_back();
    words.back() += byte;
  }
  const std::vector<TokenPair> pairs = learn_pairs(text, 200);
  const auto [expected, joined] = pairs_by_definition(words, 200);
  EXPECT_EQ(pairs, expected);
  EXPECT_EQ(pairs.size(), 200U);
  const TextEncoding encoding{.tokens = TextTokens::pairs, .pairs = pairs};
  const std::vector<std::int32_t> sizes = token_bytes(encoding);
  std::int64_t bytes = 0;
  const std::vector<std::int32_t> tokens = encoded(text, encoding, "text");
  EXPECT_EQ(tokens, joined);
  for (const std::int32_t token : tokens) bytes += sizes[static_cast<std::size_t>(token)];
  EXPECT_EQ(bytes, std::ssize(text)) << "tokens hold every byte once";
  EXPECT_LT(tokens.size() * 3, text.size());
}

TEST(TextSamples, MayBeBytes) {
  const test::TempFolder folder;
  const auto file = folder.write("text",
                                 "ab\xFF\xFE"
                                 "ba");
  const DataSets data = read_text_samples(file, {.length = 2, .tokens = TextTokens::bytes});
  EXPECT_EQ(data.vocabulary, 256);
  EXPECT_EQ(data.classes, 256);
  ASSERT_EQ(data.train.size(), 2);
  EXPECT_THAT(tokens_of(data.train.inputs, 1), ElementsAre(255, 254));
  EXPECT_THAT(tokens_of(data.train.targets, 1), ElementsAre(254, 'b'));
  EXPECT_EQ(bytes_per_target(data.train, *data.text), 1);
}

TEST(TextSamples, KnowTheBytesOfTheirTargets) {
  const test::TempFolder folder;
  const DataSets pairs = read_text_samples(folder.write("a", "abc abd abc xyz"), kPairs);
  EXPECT_EQ(pairs.vocabulary, 258) << "no third pair is there twice";
  // ab c, _ab d, _ab c, _ x y z: the targets of the first three tokens are c, _ab and d, and those
  // of the next _ab, c and _.
  ASSERT_EQ(pairs.train.size(), 3);
  EXPECT_THAT(tokens_of(pairs.train.inputs, 0), ElementsAre(256, 'c', 257));
  EXPECT_THAT(tokens_of(pairs.train.targets, 0), ElementsAre('c', 257, 'd'));
  EXPECT_DOUBLE_EQ(bytes_per_target(pairs.train, *pairs.text), (5. + 5 + 3) / 9);
  const DataSets characters = read_text_samples(folder.write("b",
                                                             "a\xC3\xA9\xE2\x82\xAC"
                                                             "a\xC3\xA9"),
                                                {.length = 2});
  EXPECT_DOUBLE_EQ(bytes_per_target(characters.train, *characters.text), (2. + 3 + 1 + 2) / 4);
}

TEST(TextSamples, ArePiecesOfEnoughTokens) {
  const test::TempFolder folder;
  EXPECT_THAT(error_of([&] { return read_text_samples(folder.write("t", "ab ab"), kPairs); }),
              HasSubstr("t: 3 tokens make no sample; accepted: at least 4, for pieces of 3"));
}

TEST(Sentences, AreTheSameBytesEverywhere) {
  const std::string text = sentences(0, SentencePart::train, 100'000);
  EXPECT_EQ(text.size(), 100'000U);
  EXPECT_EQ(text.substr(0, 60), "the farmer sings today.\nthe teacher laughs slowly.\nthe birds");
  EXPECT_EQ(digest_of(std::as_bytes(std::span(text))).to_text(),
            "061830f7a35b927480c15c84d4ab4c00");
  EXPECT_EQ(sentences(0, SentencePart::train, 1'000), text.substr(0, 1'000));
  EXPECT_NE(sentences(1, SentencePart::train, 1'000), text.substr(0, 1'000));
  EXPECT_NE(sentences(0, SentencePart::test, 1'000), text.substr(0, 1'000));
}

// The probabilities of the choices that made a text, multiplied: the grammar is read backwards.
double bits_of(const std::string& text) {
  const std::map<std::string, double> bits{
      // A number is a bit, and its determiner one to three.
      {"the", 1},     {"a", 2},     {"this", 3},   {"every", 3},   {"some", 2},    {"these", 3},
      {"all", 3},     {"small", 2}, {"big", 2},    {"young", 3},   {"tall", 3},    {"quiet", 4},
      {"happy", 4},   {"green", 4}, {"red", 4},    {"dog", 3},     {"cat", 3},     {"farmer", 3},
      {"girl", 3},    {"bird", 4},  {"horse", 4},  {"king", 4},    {"teacher", 4}, {"garden", 5},
      {"river", 5},   {"stone", 5}, {"letter", 5}, {"picture", 5}, {"doctor", 5},  {"clock", 5},
      {"village", 5}, {"see", 2},   {"like", 2},   {"follow", 3},  {"find", 3},    {"help", 4},
      {"call", 4},    {"know", 4},  {"hear", 4},   {"sleep", 2},   {"sing", 2},    {"run", 3},
      {"wait", 3},    {"laugh", 4}, {"dance", 4},  {"walk", 4},    {"smile", 4},   {"here", 2},
      {"today", 2},   {"often", 2}, {"slowly", 2}, {"that", 0}};
  const std::string adjectives = " small big young tall quiet happy green red ";
  const std::string determiners = " the a this every some these all ";
  const std::string transitive = " see like follow find help call know hear ";
  const std::string intransitive = " sleep sing run wait laugh dance walk smile ";
  const std::string adverbs = " here today often slowly ";
  const auto is = [](const std::string& list, const std::string& word) {
    return list.find(" " + word + " ") != std::string::npos;
  };
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find_first_of(" .\n", begin);
    std::string word = text.substr(begin, end - begin);
    if (!word.empty() && !bits.contains(word)) word.pop_back();
    if (!word.empty()) words.push_back(word);
    if (text[end] == '.') words.emplace_back(".");
    begin = end + 1;
  }
  double sum = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == ".") continue;
    const std::string& next = words[i + 1];
    sum += bits.at(word);
    if (is(determiners, word)) {
      sum += 1 - std::log2(is(adjectives, next) ? 0.25 : 0.75);
    } else if (is(transitive, word)) {
      sum += 1;
    } else if (is(intransitive, word)) {
      sum += 1 - std::log2(is(adverbs, next) ? 0.25 : 0.75);
    } else if (!is(adjectives, word) && !is(adverbs, word) && word != "that") {
      sum -= std::log2(next == "that" ? 0.125 : 0.875);
    }
  }
  return sum;
}

TEST(Sentences, HaveTheEntropyThatIsSaid) {
  std::string text = sentences(5, SentencePart::train, 4'000'000);
  text.resize(text.rfind('\n') + 1);
  const double measured = bits_of(text) / static_cast<double>(text.size());
  // The deviation of the mean of some 130,000 sentences is below a thousandth of it.
  EXPECT_NEAR(sentence_bits_per_byte(), measured, 0.004 * measured);
  // Bytes that are drawn one by one, as often as they are in the text.
  std::map<char, double> counts;
  for (const char byte : text) ++counts[byte];
  double order_0 = 0;
  for (const auto& [byte, count] : counts) {
    const double share = count / static_cast<double>(text.size());
    order_0 -= share * std::log2(share);
  }
  EXPECT_GT(order_0, 3.5 * sentence_bits_per_byte());
}

TEST(Sentences, AgreeInNumber) {
  const std::string text = sentences(0, SentencePart::train, 200'000);
  for (const char* const wrong : {" every dogs", " these dog ", " all cat ", " this girls"}) {
    EXPECT_EQ(text.find(wrong), std::string::npos) << wrong;
  }
  EXPECT_NE(text.find("every dog sees"), std::string::npos);
  EXPECT_NE(text.find("all dogs see "), std::string::npos);
}

TEST(Sentences, AreSamplesWithATestSet) {
  const DataSets data = make_sentence_samples({.seed = 0, .size = 20'000}, {.length = 32});
  EXPECT_EQ(data.train.size(), 19'999 / 32);
  ASSERT_TRUE(data.test.has_value());
  EXPECT_EQ(data.test->size(), 1'999 / 32);
  EXPECT_EQ(data.vocabulary, 26) << "23 letters, without j, x and z; space, full stop and new line";
  EXPECT_THAT(data.notes, ElementsAre(HasSubstr(" bits per byte at best")));
  EXPECT_EQ(bytes_per_target(*data.test, *data.text), 1);
}

}  // namespace
}  // namespace rubato
