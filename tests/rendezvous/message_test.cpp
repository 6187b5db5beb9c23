#include <gmock/gmock.h>

#include "hosts/rendezvous/protocol.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato::rendezvous_detail {
namespace {

const std::vector<Message> kMessages{
    {.kind = Kind::challenge, .fields = {"protocol", "nonce", ""}},
    {.kind = Kind::welcome, .fields = {"proof"}},
    {.kind = Kind::value, .fields = {std::string("\0\xff\n", 3)}},
    {.kind = Kind::missing},
    {.kind = Kind::refused, .fields = {"why"}},
    {.kind = Kind::hello, .fields = {"nonce", "proof"}},
    {.kind = Kind::get, .fields = {"key", "10"}},
    {.kind = Kind::set, .fields = {"", ""}},
    {.kind = Kind::compare_set, .fields = {"key", "one", std::string(70'000, 'x')}},
    {.kind = Kind::add, .fields = {"key", "-3"}}};

std::optional<Message> read(std::string_view bytes, std::size_t limit = kMaxMessageBytes) {
  MessageReader reader(limit);
  reader.add(bytes);
  return reader.take();
}

std::string error_of_reading(std::string_view bytes, std::size_t limit = kMaxMessageBytes) {
  return error_of([&] { return read(bytes, limit); });
}

TEST(Message, IsReadAsItIsWritten) {
  for (const Message& message : kMessages) EXPECT_EQ(read(bytes_of(message)), message);
}

TEST(Message, MayComeInAnyPieces) {
  MessageReader reader(kMaxMessageBytes);
  for (const Message& message : kMessages) {
    const std::string bytes = bytes_of(message);
    for (std::size_t i = 0; i + 1 < bytes.size(); ++i) {
      reader.add({&bytes[i], 1});
      EXPECT_EQ(reader.size(), i + 1);
      ASSERT_EQ(reader.take(), std::nullopt);
    }
    reader.add({&bytes.back(), 1});
    EXPECT_EQ(reader.take(), message);
    EXPECT_EQ(reader.size(), 0);
  }
}

// Its first four bytes are enough to know.
TEST(Message, OfMoreBytesThanTheLimitIsRefused) {
  const std::string accepted = "accepted: hosts of the same version";
  for (const std::string& claim :
       {std::string("\xff\xff\xff\xff"), std::string("\0\x10\0\1", 4), std::string("GET ")}) {
    EXPECT_THAT(error_of_reading(claim), HasSubstr(accepted)) << testing::PrintToString(claim);
  }
  const std::string bytes = bytes_of({.kind = Kind::welcome, .fields = {"proof"}});
  EXPECT_EQ(error_of_reading(bytes, bytes.size() - 4), "no error");
  EXPECT_THAT(error_of_reading(bytes, bytes.size() - 5), HasSubstr(accepted));
  EXPECT_THAT(
      error_of([] {
        return bytes_of({.kind = Kind::value, .fields = {std::string(kMaxMessageBytes - 4, 'x')}});
      }),
      HasSubstr("accepted: up to 1048576"));
  static_cast<void>(
      bytes_of({.kind = Kind::value, .fields = {std::string(kMaxMessageBytes - 5, 'x')}}));
}

TEST(Message, ThatIsNoneIsRefused) {
  for (const std::string& body :
       {std::string(), std::string("\x7f"), std::string(1, '\0'),
        // A field less than it has; one that is longer than the message; a byte more.
        std::string("\x11\0\0\0\1k", 6), std::string("\x02\0\0\0\2k", 6),
        std::string("\x02\0\0\0\1kk", 7), std::string("\x02\0\0\1", 4),
        std::string("\x02\xff\xff\xff\xffk", 6), std::string("\x04x", 2)}) {
    const std::string bytes = std::string("\0\0\0", 3) + static_cast<char>(body.size()) + body;
    EXPECT_NE(error_of_reading(bytes), "no error") << testing::PrintToString(body);
  }
}

// Whoever asks waits for the answer.
TEST(Message, IsFollowedByNothing) {
  const std::string bytes = bytes_of({.kind = Kind::get, .fields = {"key", "0"}});
  EXPECT_NE(error_of_reading(bytes + "x"), "no error");
}

}  // namespace
}  // namespace rubato::rendezvous_detail
