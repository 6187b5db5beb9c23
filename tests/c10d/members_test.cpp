// The list of a generation's hosts, and what is known of their processes.

#include "hosts/run_status/members.hpp"

#include <string>

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hosts/run_status/liveness.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato::hosts_detail {
namespace {

const Members kMembers{.generation = 7,
                       .hosts = {{.host = 3, .standing = {.steps = 41}},
                                 {.host = 9, .standing = {.steps = 42, .finished = true}},
                                 {.host = 12}},
                       .first_open = 4,
                       .out = {5, 6},
                       .passed = {13},
                       .cut_off = {{4, "host 3 cannot reach host 4"}}};

TEST(Members, AreReadAsTheyWereWritten) {
  EXPECT_EQ(parse_turn(signed_text(kMembers, "token"), 7, "token"), Turn(kMembers));
  EXPECT_TRUE(kMembers.contains(9));
  EXPECT_FALSE(kMembers.contains(4));
}

TEST(Members, AreThoseOfWhoKnowsTheToken) {
  const std::string text = signed_text(kMembers, "token");
  std::string changed = text;
  changed[changed.find("41")] = '5';
  for (const std::string& bad :
       {std::string(), std::string("x"), changed, text + "0", signed_text(kMembers, "another")}) {
    EXPECT_THAT(error_of([&] { return parse_turn(bad, 7, "token"); }),
                HasSubstr("know another token"))
        << bad;
  }
}

TEST(Members, AreOfTheGenerationThatIsAskedFor) {
  EXPECT_THAT(error_of([&] { return parse_turn(signed_text(kMembers, "token"), 8, "token"); }),
              HasSubstr("cannot be read"));
}

TEST(Members, AreFollowedByAnEnd) {
  for (const EndOfHosts end : {EndOfHosts::finished, EndOfHosts::paused}) {
    const std::string text = signed_text(end, 8, "token");
    EXPECT_EQ(parse_turn(text, 8, "token"), Turn(end));
    EXPECT_THAT(error_of([&] { return parse_turn(text, 7, "token"); }),
                HasSubstr("cannot be read"));
  }
}

TEST(Members, AreOneAtLeastAndNoneTwice) {
  Members none = kMembers;
  none.hosts.clear();
  Members twice = kMembers;
  twice.hosts.push_back(twice.hosts.front());
  for (const Members& bad : {none, twice}) {
    EXPECT_THAT(error_of([&] { return parse_turn(signed_text(bad, ""), 7, ""); }),
                HasSubstr("cannot be read"));
  }
}

TEST(Members, SayWithWhatTheyCome) {
  const Here here{.standing = {.steps = 3}, .cuts = {{2, "no \"way\""}, {11, "none either"}}};
  EXPECT_EQ(parse_here(here_text(here)), here);
  EXPECT_EQ(parse_here(here_text({})), Here());
  for (const std::string bad :
       {"", "3", "{}", R"({"standing":"3","cuts":[[0,"x"]]})", R"({"standing":3,"cuts":[]})"}) {
    EXPECT_NE(error_of([&] { return parse_here(bad); }), "no error") << bad;
  }
  // The reasons are a system's, in whatever language.
  EXPECT_EQ(parse_here(here_text({.cuts = {{1, "\xff"}}})).cuts.at(1), "\xef\xbf\xbd");
}

TEST(HostStandings, AreTexts) {
  EXPECT_EQ(text_of(HostStanding{}), "none");
  EXPECT_EQ(text_of(HostStanding{.steps = 3}), "3");
  EXPECT_EQ(text_of(HostStanding{.steps = 3, .finished = true}), "finished 3");
  for (const HostStanding standing :
       {HostStanding{}, {.steps = 0}, {.steps = 5, .finished = true}}) {
    EXPECT_EQ(parse_standing(text_of(standing)), standing);
  }
  for (const char* bad : {"", "finished", "-1", "3 ", "none "}) {
    EXPECT_NE(error_of([&] { return parse_standing(bad); }), "no error") << bad;
  }
}

TEST(ProcessNames, TellWhetherTheirProcessRuns) {
  EXPECT_EQ(state_of_process(name_of_this_process()), ProcessState::running);
  EXPECT_EQ(state_of_process(""), ProcessState::unknown);
  EXPECT_EQ(state_of_process("elsewhere/1 1 1"), ProcessState::unknown);
  // The number of this process was that of another one before.
  const std::string own = name_of_this_process();
  EXPECT_EQ(state_of_process(own.substr(0, own.rfind(' ')) + " 1"), ProcessState::ended);

  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::string name = name_of_this_process();
    const bool written = write(pipe_ends[1], name.data(), name.size()) > 0;
    _exit(written ? 0 : 1);
  }
  std::string name(200, ' ');
  name.resize(static_cast<std::size_t>(read(pipe_ends[0], name.data(), name.size())));
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  // First one that nobody has taken notice of, then one that is not there.
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(state_of_process(name), ProcessState::ended);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(state_of_process(name), ProcessState::ended);
}

}  // namespace
}  // namespace rubato::hosts_detail
