// What hosts say of themselves before they are connected, and what they make of it.

#include "hosts/run_status/greeting.hpp"

#include <gmock/gmock.h>

#include "support/error_of.hpp"

namespace rubato::hosts_detail {
namespace {

Greeting greeting(std::string machine = "here") {
  return {.count = 2,
          .weight = 0.1,
          .machine = machine,
          .machine_id = "id of " + machine,
          .interface = "127.0.0.1",
          .probe_address = "127.0.0.1:4711",
          .nonce = "12ab",
          .equal = {{"--lr", "0.1"}, {"data", "line\nwith \"quotes\" and \xff"}}};
}

TEST(Greeting, IsReadAsItWasWritten) {
  Greeting written = greeting();
  written.equal[1].text = "with \"quotes\"";
  EXPECT_EQ(parse_greeting(greeting_text(written), 1), written);
  written.brings = 12;
  EXPECT_EQ(parse_greeting(greeting_text(written), 1), written);
  // It is shown to people.
  written.machine = "\033[2Jnode\n";
  EXPECT_EQ(parse_greeting(greeting_text(written), 1).machine, "?[2Jnode?");
  // What is no UTF-8 is replaced, the same way on all hosts.
  EXPECT_EQ(greeting_text(greeting()), greeting_text(greeting()));
}

TEST(Greeting, MayBeAnything) {
  const auto error = [](std::string_view text) {
    return error_of([&] { return parse_greeting(text, 3); });
  };
  for (
      const std::string text :
      {"", "{}", "[1,2", "\x80\x02}q", "null", R"({"protocol":"1"})", R"({"protocol":5})",
       R"({"protocol":1e300})",
       R"({"protocol":5,"count":2,"weight":1,"machine":"","machine_id":"","interface":"","door":"","nonce":"","equal":[["a"]]})"}) {
    EXPECT_EQ(error(text),
              "host 3 has left a text that is not a greeting; accepted: the same version of rubato "
              "on all hosts")
        << text;
  }
  EXPECT_EQ(error(std::string(kMaxGreetingBytes + 1, '[')),
            "host 3 sends too long a greeting; accepted: the same version of rubato on all hosts");
  EXPECT_EQ(error(std::string(kMaxGreetingBytes, '[')),
            "host 3 has left a text that is not a greeting; accepted: the same version of rubato "
            "on all hosts");
  EXPECT_EQ(
      error(R"({"protocol":7,"more":"than is known here"})"),
      "host 3 speaks version 7 of the protocol, this host 5; accepted: the same version of rubato "
      "on all hosts");
  Greeting heavy = greeting();
  heavy.weight = -1;
  EXPECT_EQ(error(greeting_text(heavy)), "host 3 has the weight -1; accepted: a number above 0");
}

TEST(Greeting, HasABound) {
  Greeting long_one = greeting();
  long_one.equal[0].text.assign(kMaxGreetingBytes, 'x');
  EXPECT_THAT(error_of([&] { return greeting_text(long_one); }),
              testing::HasSubstr("accepted: up to 262144"));
}

TEST(Greeting, IsNeverTheSame) {
  const Greeting one = greeting_of(C10dOptions());
  const Greeting other = greeting_of(C10dOptions());
  EXPECT_EQ(one.nonce.size(), 32U);
  EXPECT_NE(one.nonce, other.nonce);
  EXPECT_FALSE(one.machine_id.empty());
  EXPECT_EQ(one.machine_id, other.machine_id);
}

TEST(Proof, IsOfTokenHostAndAllGreetings) {
  const std::vector<std::string> greetings{"a", "b"};
  const std::string proof = proof_of("token", 0, greetings);
  EXPECT_EQ(proof.size(), 64U);
  EXPECT_EQ(proof_of("token", 0, greetings), proof);
  EXPECT_NE(proof_of("tokem", 0, greetings), proof);
  EXPECT_NE(proof_of("", 0, greetings), proof);
  EXPECT_NE(proof_of("token", 1, greetings), proof);
  EXPECT_NE(proof_of("token", 0, std::vector<std::string>{"b", "a"}), proof);
  EXPECT_NE(proof_of("token", 0, std::vector<std::string>{"ab", ""}), proof);
}

TEST(Greetings, OfOneMachineMayUseItsLoopback) {
  const std::vector<Greeting> greetings{greeting(), greeting()};
  require_compatible(greetings, 1);
  EXPECT_EQ(names_of(greetings), (std::vector<std::string>{"host 0", "host 1"}));
}

TEST(Greetings, OfSeveralMachinesMayNot) {
  std::vector<Greeting> greetings{greeting("one"), greeting("two")};
  greetings[0].interface = "192.0.2.1";
  for (const int rank : {0, 1}) {
    EXPECT_EQ(error_of([&] { require_compatible(greetings, rank); }),
              "host 1 (two) can be reached at 127.0.0.1 only, which no other machine reaches; "
              "accepted: the address or the network interface at which the others reach it");
  }
  greetings[1].interface = "192.0.2.2";
  require_compatible(greetings, 0);
}

TEST(Greetings, SayWhatDiffers) {
  std::vector<Greeting> greetings{greeting(), greeting()};
  greetings[1].equal.push_back({.name = "--seed", .text = "1"});
  EXPECT_EQ(error_of([&] { require_compatible(greetings, 0); }),
            "host 1 has another --seed (1, here none); accepted: the same on all hosts");
  EXPECT_EQ(error_of([&] { require_compatible(greetings, 1); }),
            "host 0 has another --seed (none, here 1); accepted: the same on all hosts");
}

TEST(Greetings, SayItWithoutControlCharacters) {
  std::vector<Greeting> greetings{greeting(), greeting()};
  greetings[1].equal[0].text = "\033[2J0.2\n";
  EXPECT_EQ(objection_to(greetings[0], greetings[1]), "another --lr (?[2J0.2?, here 0.1)");
  EXPECT_EQ(error_of([&] { require_compatible(greetings, 0); }),
            "host 1 has another --lr (?[2J0.2?, here 0.1); accepted: the same on all hosts");
  // Texts that differ in them are not the same.
  greetings[0].equal[0].text = "\033[2J0.2\t";
  EXPECT_NE(objection_to(greetings[0], greetings[1]), "");
}

}  // namespace
}  // namespace rubato::hosts_detail
