// MessageReader: refuses what comes with an Error, or reads messages that are written again as they
// have come, in whatever pieces. The first byte says how long the pieces are. A server carries out
// what a client may ask for.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <rubato/base/error.hpp>

#include "base/core/check.hpp"
#include "hosts/rendezvous/connection.hpp"
#include "hosts/rendezvous/protocol.hpp"

namespace {

using namespace rubato::rendezvous_detail;

void carry_out(const Message& message, KeyValues& values) {
  if (message.kind == Kind::set) values.set(message.fields[0], message.fields[1]);
  if (message.kind == Kind::compare_set) {
    values.compare_set(message.fields[0], message.fields[1], message.fields[2]);
  }
  if (message.kind == Kind::add) values.add(message.fields[0], 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = 1 + std::size_t{data[0]};
  std::string_view rest(reinterpret_cast<const char*>(data + 1), size - 1);
  KeyValues values(10'000);
  MessageReader reader(kMaxMessageBytes);
  std::string read;
  try {
    while (!rest.empty()) {
      const std::string_view now = rest.substr(0, std::min(piece, rest.size()));
      reader.add(now);
      read += now;
      rest.remove_prefix(now.size());
      RUBATO_CHECK(reader.size() <= read.size(), "it holds no more than has come");
      const auto message = reader.take();
      if (!message) continue;
      RUBATO_CHECK(bytes_of(*message) == read, "a message is written as it is read");
      read.clear();
      carry_out(*message, values);
    }
  } catch (const rubato::Error&) {
    // As it should be.
  }
  return 0;
}
