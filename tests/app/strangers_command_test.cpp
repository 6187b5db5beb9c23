// Strangers at the port of a `rubato rendezvous` while hosts that come and go train.

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "app/background_program.hpp"
#include "app/small_training.hpp"
#include "support/stranger.hpp"

namespace rubato {
namespace {

using std::chrono::milliseconds;
using test::BackgroundProgram;
using test::Stranger;
using test::wait_until;

// They come all the time, begin messages and do not end them, and stay.
class Crowd {
 public:
  explicit Crowd(int port) : port_(port), thread_([this] { come(); }) {}
  ~Crowd() {
    ends_ = true;
    thread_.join();
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

 private:
  void come() {
    const std::vector<std::string> sayings{
        std::string("\0\x08\0\0\0\0\0\0\0abc", 12), std::string("\0\0\0\x40\x12", 5),
        std::string("\xff\xff\xff\xff\x12"), std::string("GET / HTTP/1.1\r\n"), std::string()};
    std::deque<Stranger> there;
    for (std::size_t i = 0; !ends_; ++i) {
      there.emplace_back(port_);
      there.back().say(sayings[i % sayings.size()]);
      if (there.size() > 50) there.pop_front();
      std::this_thread::sleep_for(milliseconds(5));
    }
  }

  int port_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

class StrangersAtTheRendezvous : public test::SmallTraining {
 protected:
  // How much of them there is, wherever the run has gone on.
  [[nodiscard]] std::size_t metrics() const {
    return content("run/metrics.jsonl").size() + content("run-2/metrics.jsonl").size();
  }
};

// A host is lost in the middle of it, and the other one goes on.
TEST_F(StrangersAtTheRendezvous, StopNobodyFromGoingOn) {
  write_trace({32, 64, 160, 96});
  folder_.write("token", "open sesame\n");
  test::BackgroundRendezvous server(folder_.path(), "--port 0 --token-file token");
  const int port = server.port();
  const std::string host = fmt::format(
      "train --data mnist:data --trace trace.csv --on-trace-end cycle --minibatch 8 --model "
      "softmax "
      "--threads 1 --epochs 1000000 --hosts 2 --min-hosts 1 --out run "
      "--rendezvous 127.0.0.1:{}/run",
      port);
  const std::string with_token = host + " --token-file token";
  std::optional<Crowd> crowd(port);
  BackgroundProgram one(with_token, folder_.path());
  BackgroundProgram other(with_token, folder_.path());
  wait_until([&] { return metrics() > 0; });
  other.end(SIGKILL);
  const std::size_t before = metrics();
  wait_until([&] { return metrics() > before + 10'000; });
  EXPECT_TRUE(one.runs()) << one.output();

  EXPECT_EQ(refusal(host),
            fmt::format("rubato train: cannot reach the rendezvous 127.0.0.1:{}: it is served with "
                        "another token; accepted: the same on all hosts\n",
                        port));
  one.signal(SIGINT);
  wait_until([&] { return !one.runs(); });
  EXPECT_THAT(one.code(), testing::AnyOf(130, 143)) << one.output();
  // They have to find it as long as they come.
  crowd.reset();
  server.end(SIGTERM);
  EXPECT_EQ(server.code(), 0);
}

// A token of the user's own counts for the hosts, and so for where they meet.
TEST_F(StrangersAtTheRendezvous, AreNotTheHostsThatAreLaunched) {
  write_trace({32, 64});
  folder_.write("token", "open sesame\n");
  succeeds(
      "launch --hosts 2 --min-hosts 1 -- train --data mnist:data --trace trace.csv --on-trace-end "
      "cycle --minibatch 8 --model softmax --epochs 1 --token-file token --quiet --out run");
}

}  // namespace
}  // namespace rubato
