// What signals do to whom, as a function, and as docs/runs.md says it.

#include <chrono>
#include <csignal>
#include <map>
#include <ostream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <sys/resource.h>

#include "clients/app/line/signals.hpp"
#include "support/temp_folder.hpp"

namespace rubato::app {

std::ostream& operator<<(std::ostream& out, SignalAction action) {
  return out << static_cast<int>(action);
}

namespace {

using std::chrono::milliseconds;
using Action = SignalAction;
using Origin = SignalOrigin;
using Role = SignalRole;

Action first(Role role, int number, OnTerm on_term = OnTerm::leave) {
  return action_of(role, on_term, {.number = number});
}

std::vector<int> ending_signals() {
  std::vector<int> numbers;
  for (int number = 1; number <= SIGRTMAX; ++number) {
    if (is_ending(number)) numbers.push_back(number);
  }
  return numbers;
}

TEST(SignalActions, EveryOneThatEndsAProcessKeepsWhatThereIs) {
  for (const int number : ending_signals()) {
    SCOPED_TRACE(number);
    EXPECT_EQ(first(Role::run, number), number == SIGUSR1 ? Action::checkpoint : Action::stop);
    EXPECT_EQ(first(Role::launcher, number), number == SIGUSR1 ? Action::checkpoint : Action::stop);
    EXPECT_EQ(first(Role::bystander, number), Action::stop);
  }
  for (const int number : {SIGKILL, SIGSTOP, SIGCONT, SIGCHLD, SIGWINCH, SIGTSTP}) {
    EXPECT_FALSE(is_ending(number)) << number;
  }
}

TEST(SignalActions, AHostThatCanBeSparedLeaves) {
  for (const int number : ending_signals()) {
    SCOPED_TRACE(number);
    const bool keyboard = number == SIGINT || number == SIGQUIT;
    EXPECT_EQ(first(Role::elastic_host, number), number == SIGUSR1 ? Action::checkpoint
                                                 : keyboard        ? Action::stop
                                                                   : Action::leave);
    EXPECT_EQ(first(Role::elastic_host, number, OnTerm::stop), number == SIGUSR1
                                                                   ? Action::checkpoint
                                                               : number == SIGUSR2 ? Action::leave
                                                                                   : Action::stop);
  }
}

TEST(SignalActions, TheSameWithinASecondIsOneRequest) {
  const auto again = [](int number, Action under_way, int since) {
    return action_of(
        Role::run, OnTerm::leave,
        {.number = number, .under_way = under_way, .since_first = milliseconds(since)});
  };
  for (const int number : {SIGINT, SIGQUIT, SIGTERM, SIGHUP}) {
    EXPECT_EQ(again(number, Action::stop, 0), Action::nothing);
    EXPECT_EQ(again(number, Action::stop, 999), Action::nothing);
    EXPECT_EQ(again(number, Action::stop, 1000), Action::end_now);
  }
  // The system repeats it each second, and USR2 before TERM is a warning of it.
  EXPECT_EQ(again(SIGXCPU, Action::stop, 5000), Action::nothing);
  EXPECT_EQ(again(SIGTERM, Action::stop, -1), Action::nothing);
  // Each asks for another checkpoint, but where the run ends with one.
  EXPECT_EQ(again(SIGUSR1, Action::checkpoint, 5000), Action::checkpoint);
  EXPECT_EQ(again(SIGUSR1, Action::stop, 5000), Action::nothing);
  EXPECT_EQ(again(SIGTERM, Action::checkpoint, 5000), Action::stop);
}

TEST(SignalActions, WhoAsksForMoreGetsIt) {
  const SignalEvent event{
      .number = SIGINT, .under_way = Action::leave, .since_first = milliseconds(5000)};
  EXPECT_EQ(action_of(Role::elastic_host, OnTerm::leave, event), Action::stop);
}

TEST(SignalActions, WhatIsPassedOnCountsOnce) {
  SignalEvent event{.number = SIGTERM,
                    .origin = Origin::passed_on,
                    .under_way = Action::stop,
                    .since_first = milliseconds(60'000)};
  EXPECT_EQ(action_of(Role::run, OnTerm::leave, event), Action::nothing);
  event.origin = Origin::passed_on_again;
  event.since_first = milliseconds(0);
  EXPECT_EQ(action_of(Role::run, OnTerm::leave, event), Action::end_now);
  event = {.number = SIGTERM, .origin = Origin::passed_on};
  EXPECT_EQ(action_of(Role::run, OnTerm::leave, event), Action::stop);
}

TEST(SignalActions, AFaultOfTheProgramsEndsIt) {
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
    EXPECT_TRUE(is_fault(number));
    EXPECT_EQ(action_of(Role::run, OnTerm::leave, {.number = number, .origin = Origin::own_fault}),
              Action::end_now);
    EXPECT_EQ(first(Role::run, number), Action::stop);
  }
  EXPECT_FALSE(is_fault(SIGTERM));
}

// The words of a cell, without what is in parentheses.
std::vector<std::string> names_in(std::string cell) {
  for (std::size_t begin = 0; (begin = cell.find(" (")) != std::string::npos;) {
    cell.erase(begin, cell.find(')', begin) - begin + 1);
  }
  std::vector<std::string> names;
  std::string name;
  for (const char letter : cell + ",") {
    if (letter == ',') names.push_back(std::exchange(name, ""));
    if (letter != ',' && !(letter == ' ' && name.empty())) name += letter;
  }
  return names;
}

TEST(SignalActions, AreThoseOfTheDocument) {
  const std::map<std::string, Action> words{
      {"stop", Action::stop}, {"leave", Action::leave}, {"checkpoint", Action::checkpoint}};
  const std::string doc = test::read_file(RUBATO_RUNS_MD);
  std::size_t at = doc.find("\n| signal | a run |");
  ASSERT_NE(at, std::string::npos);
  int signals = 0;
  // Below the line that is drawn under the head.
  for (at = doc.find("\n| ", at + 1); doc.compare(at, 3, "\n| ") == 0;) {
    const std::size_t end = doc.find('\n', at + 1);
    std::vector<std::string> cells;
    for (std::size_t begin = at + 3; begin < end;) {
      const std::size_t border = doc.find(" |", begin);
      cells.push_back(doc.substr(begin, border - begin));
      begin = border + 3;
    }
    at = end;
    ASSERT_GE(cells.size(), 3U);
    for (const std::string& name : names_in(cells[0])) {
      if (name.starts_with("from ")) continue;
      const std::string shortened = name.substr(0, name.find(' '));
      int number = shortened == "RTMIN" ? SIGRTMIN : 0;
      for (int i = 1; i < SIGRTMIN; ++i) {
        const char* const abbreviation = sigabbrev_np(i);
        if (abbreviation != nullptr && shortened == abbreviation) number = i;
      }
      ASSERT_NE(number, 0) << name;
      ++signals;
      EXPECT_EQ(first(Role::run, number), words.at(cells[1])) << name;
      EXPECT_EQ(first(Role::elastic_host, number), words.at(cells[2])) << name;
    }
  }
  EXPECT_EQ(signals, 21);
}

// Libraries may handle signals from their loading on, as UCX does SIGHUP.
TEST(StopSignals, TakeFromLibrariesThoseThatEndAProgram) {
  const auto of_library = [](int /*number*/) {};
  std::signal(SIGHUP, of_library);
  std::signal(SIGUSR2, of_library);
  const StopSignals signals(nullptr, Role::run);
  std::raise(SIGUSR2);
  EXPECT_EQ(signals.action(), Action::nothing);
  std::raise(SIGHUP);
  EXPECT_EQ(signals.received(), SIGHUP);
  std::signal(SIGUSR2, SIG_DFL);
}

// A thread that nothing wakes up would have std::terminate() wait for it.
TEST(SignalListener, IsRefusedWithoutADescriptor) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const StopSignals signals(nullptr, Role::run);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THROW(SignalListener([] {}), std::system_error);
}

}  // namespace
}  // namespace rubato::app
