#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <rubato/base/digest.hpp>
#include <rubato/base/state.hpp>

#include "base/state/sha256.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

State example() {
  State state;
  state.put("doubles", std::vector<double>{1.5, -0.0, std::numeric_limits<double>::infinity()});
  state.put("floats", std::vector<float>{0.1F, 2});
  state.put("count", std::int64_t{-7});
  state.put("none", std::vector<double>());
  state.put_array(
      "flags", {.type = ElementType::boolean, .shape = {3, 1}, .bytes = std::string("\1\0\1", 3)});
  state.put_text("configuration", "lr = 0.1\n\"quoted\" \xE2\x82\xAC");
  return state;
}

// A file with that header and those data, whatever they claim, and the right checksum.
std::string sealed(const std::string& header, const std::string& data) {
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i) & 0xFF);
  bytes += header + data;
  for (const std::uint8_t byte : Sha256::digest_of(bytes)) bytes += static_cast<char>(byte);
  return bytes;
}

std::string header_of(const std::string& arrays, const std::string& version = "1") {
  return R"({"__metadata__":{"rubato.kind":"state","rubato.version":")" + version + "\"}" +
         (arrays.empty() ? "" : "," + arrays) + "}";
}

std::string digest_entry(int begin) {
  return R"("rubato.sha256":{"dtype":"U8","shape":[32],"data_offsets":[)" + std::to_string(begin) +
         "," + std::to_string(begin + 32) + "]}";
}

std::string parse_error(const std::string& bytes) {
  return error_of([&] { return parse_state(bytes, "file"); });
}

TEST(State, GivesBackWhatWasPut) {
  const State state = example();
  EXPECT_THAT(state.values<float>("floats"), ElementsAre(0.1F, 2));
  EXPECT_EQ(state.value<std::int64_t>("count"), -7);
  EXPECT_TRUE(state.has("none"));
  EXPECT_TRUE(state.values<double>("none").empty());
  EXPECT_FALSE(state.has("lr"));
  EXPECT_THAT(state.text("configuration"), StartsWith("lr"));
}

TEST(State, SaysWhatIsNotThere) {
  const State state = example();
  EXPECT_EQ(error_of([&] { return state.value<double>("lr"); }), "the state has no 'lr'");
  EXPECT_EQ(error_of([&] { return state.text("lr"); }), "the state has no 'lr'");
  EXPECT_EQ(error_of([&] { return state.value<double>("count"); }),
            "the state's 'count' is I64; accepted: F64");
  EXPECT_EQ(error_of([&] { return state.value<double>("doubles"); }),
            "the state's 'doubles' has 3 elements; accepted: 1");
  EXPECT_EQ(error_of([&] { return state.count("count"); }),
            "the state's 'count' is -7; accepted: at least 0");
}

TEST(State, TakesANameOnce) {
  State state = example();
  EXPECT_EQ(error_of([&] { state.put("count", 1.0); }),
            "the state has a 'count' already; accepted: each name once");
  state.put_text("word", "a");
  EXPECT_EQ(error_of([&] { state.put_text("word", "b"); }),
            "the state has a 'word' already; accepted: each name once");
  EXPECT_EQ(error_of([&] { state.put("word", 1.0); }),
            "the state has a 'word' already; accepted: each name once");
  EXPECT_EQ(error_of([&] { state.put_text("count", "a"); }),
            "the state has a 'count' already; accepted: each name once");
}

TEST(State, HoldsStatesUnderNames) {
  State state = example();
  state.put("a", example());
  State nested;
  nested.put("b", example());
  state.put("a-b", nested);
  state.put("none", State());
  EXPECT_TRUE(state.has("a/count"));
  EXPECT_EQ(state.part("a"), example());
  EXPECT_EQ(state.part("a-b"), nested);
  EXPECT_EQ(state.part("a-b").part("b"), example());
  EXPECT_TRUE(state.part("none").empty());
  EXPECT_TRUE(state.part("a-").empty());
  EXPECT_FALSE(state.part("a").empty());
  EXPECT_EQ(parse_state(state_bytes(state), "file").part("a"), example());
  // As two of one name are.
  EXPECT_THAT(error_of([&] { state.put("a", example()); }), HasSubstr("the state has a 'a/"));
  EXPECT_EQ(error_of([&] { return state.part("a-b").part("b").text("lr"); }),
            "the state has no 'a-b/b/lr'");
  EXPECT_EQ(error_of([&] { return state.part("a").value<double>("count"); }),
            "the state's 'a/count' is I64; accepted: F64");
  EXPECT_EQ(error_of([&] { return state.part("a").value<double>("doubles"); }),
            "the state's 'a/doubles' has 3 elements; accepted: 1");
  EXPECT_EQ(error_of([&] { return state.part("a").count("count"); }),
            "the state's 'a/count' is -7; accepted: at least 0");
}

// One entry of each kind.
struct Remembered {
  double rate = 0;
  std::int64_t count = 0;
  StepIndex step{};
  std::vector<float> fixed = std::vector<float>(2);
  std::vector<double> list{};
  std::string text{};
  std::optional<double> best{};
  bool over = false;
  StateArray bytes{.type = ElementType::u8, .shape = {0}, .bytes = {}};
  std::string bound = "same";
  std::string found{};

  void visit_state(StateVisitor& state) {
    state.value("rate", rate);
    state.count("count", count);
    state.count("step", step);
    StateVisitor part = state.part("part");
    part.values("fixed", std::span<float>(fixed));
    part.list("list", list);
    part.text("text", text);
    state.optional("best", best);
    state.flag("over", over);
    state.array("bytes", bytes);
    found = state.bound("bound", bound);
    state.require(rate < 9, "its rate");
  }
};

const Remembered kAll{.rate = 0.5,
                      .count = 3,
                      .step = StepIndex{4},
                      .fixed = {1, 2},
                      .list = {5, 6, 7},
                      .text = "words",
                      .best = 1.5,
                      .over = true,
                      .bytes = {.type = ElementType::u8, .shape = {2}, .bytes = "ab"}};

TEST(StateVisitor, LoadsWhatItHasSaved) {
  const State state = state_of(kAll);
  EXPECT_EQ(state.part("part").values<float>("fixed"), (std::vector<float>{1, 2}));
  EXPECT_EQ(state.array("rate").shape, std::vector<std::int64_t>());
  EXPECT_EQ(state.array("part/fixed").shape, std::vector<std::int64_t>{2});
  Remembered loaded{.bound = "other"};
  load_state(loaded, state);
  EXPECT_EQ(loaded.found, "same") << "and not what would be saved now";
  loaded.bound = "same";
  EXPECT_EQ(state_of(loaded), state);
  // What need not be there is not, and is no more.
  const State less = state_of(Remembered());
  EXPECT_FALSE(less.has("best") || less.has("over"));
  load_state(loaded, less);
  EXPECT_EQ(state_of(loaded), less);
}

TEST(StateVisitor, ShowsWhatItWouldSave) {
  const State state = state_of(kAll);
  std::map<std::string, std::string> expected;
  for (const auto& [name, array] : state.arrays()) expected[name] = array.bytes;
  for (const auto& [name, text] : state.texts()) expected[name] = text;
  std::map<std::string, std::string> shown;
  const ShowEntry show = [&](std::string_view name, std::span<const std::byte> bytes) {
    const bool first =
        shown.emplace(name, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()))
            .second;
    EXPECT_TRUE(first) << name;
  };
  show_state(kAll, show);
  EXPECT_EQ(shown, expected);
}

TEST(StateVisitor, ShowsAnArrayWhereItLies) {
  std::vector<float> values{1, 2, 3};
  const void* seen = nullptr;
  const ShowEntry show = [&](std::string_view name, std::span<const std::byte> bytes) {
    if (name == "values" && bytes.size() == 12) seen = bytes.data();
  };
  StateVisitor showing = StateVisitor::to(show);
  EXPECT_TRUE(showing.showing());
  EXPECT_FALSE(showing.loading());
  showing.values("values", std::span<float>(values));
  EXPECT_EQ(seen, values.data());
}

TEST(StateVisitor, RefusesWhatIsNoState) {
  const auto error = [](std::string_view name, const auto& value) {
    State changed;
    const State good = state_of(kAll);
    for (const auto& [entry, array] : good.arrays()) {
      if (entry != name) changed.put_array(entry, array);
    }
    for (const auto& [entry, text] : good.texts()) changed.put_text(entry, text);
    changed.put(name, value);
    return error_of([&] { load_state(Remembered(), changed); });
  };
  EXPECT_EQ(error("rate", 1.0), "no error");
  EXPECT_EQ(error("rate", 9.0), "the state is damaged: its rate");
  EXPECT_EQ(error("rate", std::int64_t{1}), "the state's 'rate' is I64; accepted: F64");
  EXPECT_EQ(error("count", std::int64_t{-1}), "the state's 'count' is -1; accepted: at least 0");
  EXPECT_EQ(error("part/fixed", std::vector<float>(3)),
            "the state's 'part/fixed' has 3 elements; accepted: 2");
  EXPECT_EQ(error_of([] { load_state(Remembered(), State()); }), "the state has no 'rate'");
}

TEST(StateVisitor, KnowsWhetherThereIsAnything) {
  State state;
  state.put("a/b", 1.0);
  const StateVisitor loading = StateVisitor::out_of(state);
  EXPECT_FALSE(loading.has_none());
  EXPECT_FALSE(loading.part("a").has_none());
  EXPECT_TRUE(loading.part("b").has_none());
  EXPECT_TRUE(loading.part("a").has("b", false));
  EXPECT_FALSE(loading.part("a").has("c", true));
  const StateVisitor saving = StateVisitor::into(state);
  EXPECT_FALSE(saving.has_none());
  EXPECT_TRUE(saving.has("c", true));
}

TEST(State, TakesTheBytesOfTheShape) {
  State state;
  EXPECT_EQ(error_of([&] {
              state.put_array("half",
                              {.type = ElementType::f64, .shape = {2}, .bytes = "12345678"});
            }),
            "'half' has 8 bytes; accepted: 16 for 2 elements of type F64");
}

TEST(NamedArray, IsReadAsWhatItHolds) {
  double number = 3;
  const NamedArray array{.name = "w", .type = ElementType::f64, .shape = {}, .data = &number};
  EXPECT_EQ(array.values<double>()[0], 3);
  EXPECT_EQ(error_of([&] { return array.values<float>(); }),
            "'w' holds F64, and F32 was asked for; accepted: F64");
}

TEST(NamedArray, IsReadFromAnArrayOfItsShapeAlone) {
  State state;
  state.put_array("w", {.type = ElementType::f64, .shape = {2, 3}, .bytes = std::string(48, '\1')});
  std::vector<double> values(6);
  const auto error = [&](std::vector<std::int64_t> shape) {
    const NamedArray array{
        .name = "w", .type = ElementType::f64, .shape = std::move(shape), .data = values.data()};
    return error_of([&] { read_array(state, "", array); });
  };
  EXPECT_EQ(error({3, 2}),
            "the state's 'w' is F64 of shape [2, 3], the model's F64 of shape [3, 2]");
  EXPECT_EQ(values, std::vector<double>(6));
  EXPECT_EQ(error({2, 3}), "no error");
  EXPECT_NE(values[5], 0);
}

TEST(StateFile, KeepsEveryBit) {
  const State state = example();
  EXPECT_EQ(parse_state(state_bytes(state), "file"), state);
  EXPECT_EQ(parse_state(state_bytes(State()), "file"), State());
  const test::TempFolder folder;
  write_state(folder.path() / "state", state);
  EXPECT_EQ(read_state(folder.path() / "state"), state);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

// A checkpoint of a large model is not copied in order to be written.
TEST(StateFile, IsStreamedArrayByArray) {
  State state;
  state.put("large", std::vector<float>(10'000));
  state.put("small", std::vector<float>(100));
  const char* const large = state.array("large").bytes.data();
  std::string bytes;
  std::vector<const void*> pieces;
  stream_state(state, [&](std::string_view next) {
    bytes += next;
    pieces.push_back(next.data());
  });
  EXPECT_EQ(bytes, state_bytes(state));
  EXPECT_THAT(pieces, Contains(large)) << "it is given where it lies";
}

// Whatever the other extents of their shapes are.
TEST(StateFile, KeepsArraysWithoutElements) {
  for (const std::vector<std::int64_t>& shape :
       std::vector<std::vector<std::int64_t>>{{0}, {0, 3}, {3, 0}, {1, 2, 0}, {7, 0, 5}}) {
    State state;
    state.put("before", 1.5);
    state.put_array("empty", {.type = ElementType::f32, .shape = shape, .bytes = {}});
    state.put("count", std::int64_t{7});
    EXPECT_EQ(parse_state(state_bytes(state), "file"), state) << testing::PrintToString(shape);
  }
  // They hold nothing, but no shape makes elements of nothing.
  const auto array = [](const std::string& shape) {
    return R"("a":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,0]},)" +
           digest_entry(0);
  };
  EXPECT_EQ(parse_error(sealed(header_of(array("[3,0]")), "")), "no error");
  for (const std::string bad :
       {"[3]", "[]", "[0,9223372036854775808]", "[9223372036854775808,0]"}) {
    EXPECT_THAT(parse_error(sealed(header_of(array(bad)), "")), HasSubstr("damaged")) << bad;
  }
}

// What the format's own description asks of a file.
TEST(StateFile, IsInTheSafetensorsFormat) {
  const std::string bytes = state_bytes(example());
  std::size_t length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  EXPECT_EQ(length % 8, 0);
  EXPECT_EQ(header["flags"]["dtype"], "BOOL");
  EXPECT_EQ(header["flags"]["shape"], nlohmann::json({3, 1}));
  std::size_t covered = 0;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      for (const auto& text : value) EXPECT_TRUE(text.is_string());
    } else {
      covered +=
          value["data_offsets"][1].get<std::size_t>() - value["data_offsets"][0].get<std::size_t>();
    }
  }
  EXPECT_EQ(8 + length + covered, bytes.size());
  const std::size_t begin = header["count"]["data_offsets"][0];
  EXPECT_EQ(static_cast<unsigned char>(bytes[8 + length + begin]), 0xF9);
}

// So that who maps the file can read the arrays where they lie.
TEST(StateFile, EveryArrayIsAlignedToItsElements) {
  State state;
  for (const auto& [type, name, bytes] : kElementTypes) {
    // By name alone every array of three would follow one of another size.
    state.put_array(std::string(name),
                    {.type = type, .shape = {3}, .bytes = std::string(3 * bytes, 'x')});
  }
  state.put_array("A", {.type = ElementType::boolean, .shape = {3}, .bytes = "abc"});
  const std::string bytes = state_bytes(state);
  std::size_t length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") continue;
    const std::string dtype = value["dtype"];
    const auto* const type =
        std::find_if(kElementTypes.begin(), kElementTypes.end(),
                     [&](const ElementTypeName& known) { return known.name == dtype; });
    ASSERT_NE(type, kElementTypes.end()) << name;
    const std::size_t begin = value["data_offsets"][0];
    EXPECT_EQ((8 + length + begin) % type->bytes, 0U) << name << " at " << begin;
  }
}

TEST(StateFile, EveryTruncationAndEveryFlippedBitIsRefused) {
  const std::string good = state_bytes(example());
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_THAT(parse_error(good.substr(0, length)), HasSubstr("damaged")) << length;
  }
  EXPECT_THAT(parse_error(good + '\0'), HasSubstr("checksum"));
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(static_cast<unsigned char>(bad[bit / 8]) ^ 1U << bit % 8);
    EXPECT_THAT(parse_error(bad), HasSubstr("checksum")) << bit;
  }
}

TEST(StateFile, OfANewerVersionIsRefusedClearly) {
  EXPECT_EQ(parse_error(sealed(header_of(digest_entry(0), "2"), "")),
            "file: is of version 2, which a newer rubato has written; this one reads up to 1");
  EXPECT_EQ(parse_error(sealed(header_of(digest_entry(0), "1"), "")), "no error");
}

// With the right checksum, as only somebody who means harm would write them.
TEST(StateFile, ClaimsThatAreNotTrueAreRefused) {
  const std::string data(16, 'x');
  const auto array = [](const std::string& type, const std::string& shape,
                        const std::string& offsets) {
    return R"("a":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
           "}," + digest_entry(16);
  };
  EXPECT_EQ(parse_error(sealed(header_of(array("F64", "[2]", "[0,16]")), data)), "no error");
  for (const std::string& bad :
       {array("F64", "[3]", "[0,16]"), array("F64", "[2]", "[0,8]"), array("F65", "[2]", "[0,16]"),
        array("F64", "[2]", "[16,0]"), array("F64", "[2]", "[0]"), array("F64", "2", "[0,16]"),
        array("F64", "[2]", "[0,1000000000000]"), array("F64", "[-2]", "[0,16]"),
        array("F64", "[2305843009213693954]", "[0,16]"), array("F64", "[2.0]", "[0,16]"),
        array("U8", "[8]", "[0,8]"), array("U8", "[8]", "[8,16]"),
        array("U8", "[9223372036854775808,0]", "[0,0]"), std::string(R"("a":3)"),
        R"("b":{"dtype":"U8","shape":[16],"data_offsets":[0,16]},)" + array("F64", "[2]", "[0,16]"),
        std::string("\"a\":")}) {
    EXPECT_THAT(parse_error(sealed(header_of(bad), data)), HasSubstr("damaged")) << bad;
  }
  for (const std::string header :
       {"", "[]", "{}", R"({"__metadata__":{}})", R"({"__metadata__":{"rubato.kind":7}})",
        R"({"__metadata__":{"rubato.kind":"state"}})",
        R"({"__metadata__":{"rubato.kind":"state","rubato.version":"one"}})",
        R"({"__metadata__":{"rubato.kind":"state","rubato.version":"0"}})",
        R"({"__metadata__":{"rubato.kind":"other","rubato.version":"1"}})"}) {
    EXPECT_THAT(parse_error(sealed(header, "")), HasSubstr("damaged")) << header;
  }
  std::string longer = sealed(header_of(digest_entry(0)), "");
  longer[3] = 1;
  longer.resize(longer.size() - 32);
  for (const std::uint8_t byte : Sha256::digest_of(longer)) longer += static_cast<char>(byte);
  EXPECT_THAT(parse_error(longer), HasSubstr("header is longer"));
}

// Their lengths add up to those of the data, so that only their places give them away.
TEST(StateFile, EveryByteBelongsToOneArray) {
  const auto error = [](const std::string& arrays, std::size_t bytes) {
    return parse_error(sealed(header_of(arrays), std::string(bytes, 'x')));
  };
  const auto array = [](const std::string& name, int begin, int end) {
    return "\"" + name + R"(":{"dtype":"U8","shape":[)" + std::to_string(end - begin) +
           R"(],"data_offsets":[)" + std::to_string(begin) + "," + std::to_string(end) + "]}";
  };
  const std::string placed =
      "file: damaged or not a checkpoint: its arrays do not follow one another";
  EXPECT_EQ(error(array("a", 0, 8) + "," + array("b", 8, 16) + "," + digest_entry(16), 16),
            "no error");
  EXPECT_EQ(error(array("a", 0, 8) + "," + array("b", 4, 12) + "," + digest_entry(16), 16), placed);
  EXPECT_EQ(error(array("a", 0, 8) + "," + array("b", 0, 8) + "," + digest_entry(16), 16), placed);
  EXPECT_EQ(error(array("a", 0, 8) + "," + array("b", 12, 16) + "," + digest_entry(16), 16),
            placed);
  // What is read twice would claim memory that the file has not.
  EXPECT_EQ(error(array("a", 0, 16) + "," + array("b", 0, 16) + "," + array("c", 0, 16) + "," +
                      digest_entry(16),
                  16),
            "file: damaged or not a checkpoint: its array 'rubato.sha256' is malformed");
  EXPECT_EQ(error(digest_entry(0), 0), "no error");
  EXPECT_EQ(error(digest_entry(0), 8),
            "file: damaged or not a checkpoint: it holds more than its arrays");
}

// xxhsum -H2 prints these.
TEST(Digest, IsXxh3) {
  const auto text_of = [](std::string_view text) {
    return digest_of(std::as_bytes(std::span(text))).to_text();
  };
  EXPECT_EQ(text_of(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(text_of("abc"), "06b05ab6733a618578af5f94892f3950");
}

TEST(Digest, IsReadFromItsText) {
  const Digest digest{.high = 0x06b05ab6733a6185, .low = 0x1f};
  EXPECT_EQ(digest.to_text(), "06b05ab6733a6185000000000000001f");
  EXPECT_EQ(Digest::parse(digest.to_text()), digest);
  for (const char* const other :
       {"", "06b05ab6733a6185000000000000001", "06b05ab6733a6185000000000000001f0",
        "06B05AB6733A6185000000000000001F", "06b05ab6733a618500000000000000 g"}) {
    EXPECT_EQ(error_of([&] { return Digest::parse(other); }),
              "'" + std::string(other) +
                  "' is not a digest; accepted: 32 digits and letters from a to f");
  }
}

TEST(Digest, OfASequenceDependsOnItsOrder) {
  const Digest a{.high = 0, .low = 1};
  const Digest b{.high = 1, .low = 0};
  EXPECT_NE(chained(chained({}, a), b), chained(chained({}, b), a));
  EXPECT_NE(chained({}, a), chained(chained({}, a), a));
  EXPECT_EQ(chained({}, a), chained({}, a));
}

TEST(Sha256, IsTheStandards) {
  // FIPS 180-2, appendix B.1.
  EXPECT_EQ(Sha256::hex_of("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256 pieces;
  pieces.add("a");
  pieces.add("bc");
  EXPECT_EQ(pieces.hex(), Sha256::hex_of("abc"));
}

TEST(Sha256, OfAFileIsThatOfItsBytes) {
  const test::TempFolder folder;
  // It is read in pieces of 64 KiB.
  for (const std::size_t size : {0U, 3U, 65'536U, 65'537U, 200'000U}) {
    std::string bytes(size, 'x');
    if (size > 0) bytes.back() = 'y';
    EXPECT_EQ(Sha256::hex_of_file(folder.write("file", bytes)), Sha256::hex_of(bytes)) << size;
  }
  EXPECT_THAT(error_of([&] { return Sha256::hex_of_file(folder.path() / "none"); }),
              HasSubstr("none: No such file"));
}

TEST(Sha256, OfAFileNeedsAnEnd) {
  EXPECT_THAT(error_of([] { return Sha256::hex_of_file("/dev/zero"); }),
              HasSubstr("not a regular file"));
}

}  // namespace
}  // namespace rubato
