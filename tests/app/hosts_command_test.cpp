// `rubato train --hosts`, `rubato launch`, `rubato rendezvous` and `rubato hosts`.

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include "app/background_program.hpp"
#include "app/doc_commands.hpp"
#include "app/network_of_its_own.hpp"
#include "app/small_training.hpp"
#include "support/free_port.hpp"
#include "support/json_fields.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using test::ProgramResult;

class HostsCommand : public test::SmallTraining {
 protected:
  void SetUp() override {
    SmallTraining::SetUp();
    write_trace({32, 64, 160, 96});
  }
  // A command that trains into the folder `out`; what is given besides counts.
  [[nodiscard]] static std::vector<std::string> command(std::vector<std::string> all,
                                                        const std::string& out,
                                                        const std::vector<std::string>& more) {
    all.insert(all.end(), {"--data=mnist:data", "--trace=trace.csv", "--epochs=2",
                           "--on-trace-end=cycle", "--minibatch=8", "--out=" + out});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  [[nodiscard]] ProgramResult train(const std::string& out,
                                    const std::vector<std::string>& more) const {
    return test::rubato(command({"train"}, out, more), folder_.path());
  }
  [[nodiscard]] ProgramResult launch(int hosts, const std::string& out,
                                     const std::vector<std::string>& more,
                                     const test::WhileRunning& during = {}) const {
    return test::rubato(
        command({"launch", "--hosts", fmt::to_string(hosts), "--", "train"}, out, more),
        folder_.path(), during);
  }
  // A shell's, where PORT is one that is free.
  static ProgramResult at_free_port(std::string command, const std::filesystem::path& folder) {
    const test::FreePort port;
    for (std::size_t at = 0; (at = command.find("PORT")) != std::string::npos;) {
      command.replace(at, 4, fmt::to_string(port.number()));
    }
    return test::shell(command, folder);
  }
  // Options of a run that ends with a signal.
  static std::vector<std::string> endless() {
    return {"--model", "softmax", "--epochs", "100000", "--checkpoint-every", "never"};
  }
  // Batch normalisation and dropout are in it.
  [[nodiscard]] std::vector<std::string> of_libtorch(std::vector<std::string> more) const {
    test::write_idx_images(folder_, "large", "train", 160, 28);
    test::write_idx_images(folder_, "large", "t10k", 20, 28);
    more.insert(more.end(), {"--data", "mnist:large", "--model", "mnist-cnn"});
    return more;
  }
  // Until the training has come to a step.
  void wait_for_steps() const {
    test::wait_until([this] { return !test::read_file(file("run") / "metrics.jsonl").empty(); });
  }
  // The folder "run" has the bits of one epoch on one host.
  void expect_same_as_one_epoch() const {
    const ProgramResult alone =
        test::rubato({"train", "--model", "softmax", "--epochs", "1", "--out", "one", "--quiet"},
                     folder_.path());
    ASSERT_EQ(alone.code, 0) << alone.err;
    EXPECT_EQ(hash("run"), hash("one"));
  }
  // Trains alone and on 2 and 3 hosts, with other cores and threads each.
  void expect_same_bits(const std::vector<std::string>& more) {
    const auto with = [&](int cores, int threads) {
      std::vector<std::string> all = more;
      all.insert(all.end(), {"--cores", fmt::to_string(cores), "--threads", fmt::to_string(threads),
                             "--quiet"});
      return all;
    };
    const ProgramResult alone = train("one", with(1, 1));
    ASSERT_EQ(alone.code, 0) << alone.err;
    for (const auto& [hosts, cores, threads] :
         {std::array{2, 1, 2}, std::array{2, 3, 1}, std::array{3, 1, 1}, std::array{3, 3, 2}}) {
      const std::string out = fmt::format("on-{}-{}", hosts, cores);
      const ProgramResult result = launch(hosts, out, with(cores, threads));
      ASSERT_EQ(result.code, 0) << result.err;
      EXPECT_EQ(result.out + result.err, "");
      EXPECT_EQ(hash(out), hash("one")) << hosts << " hosts, " << cores << " cores";
    }
  }
};

TEST_F(HostsCommand, ComesToTheBitsOfOneWithAdaScale) {
  expect_same_bits(of_libtorch({"--rule", "adascale", "--log-noise"}));
}

TEST_F(HostsCommand, ComesToTheBitsOfOneByEigen) {
  expect_same_bits({"--model", "softmax", "--rule", "adascale"});
}

// Of hosts that are started one by one, one of them twice as fast.
TEST_F(HostsCommand, TrainsOnUnequalHosts) {
  folder_.write("token", "open sesame\n");
  std::vector<ProgramResult> results(3);
  std::vector<std::thread> threads;
  threads.reserve(results.size());
  const test::FreePort port;
  const std::string rendezvous = fmt::format("127.0.0.1:{}", port.number());
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      results[static_cast<std::size_t>(rank)] =
          train("three", {"--model", "softmax", "--hosts", "3", "--rank", fmt::to_string(rank),
                          "--rendezvous", rendezvous, "--token-file", "token", "--host-weight",
                          rank == 1 ? "2" : "1"});
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const ProgramResult& result : results) ASSERT_EQ(result.code, 0) << result.err;
  // The first alone shows anything.
  EXPECT_THAT(results[0].out, HasSubstr("\n3 hosts of weights 1, 2, 1\n"));
  EXPECT_EQ(results[1].out + results[1].err + results[2].out + results[2].err, "");
  ASSERT_EQ(train("one", {"--model", "softmax"}).code, 0);
  EXPECT_EQ(hash("three"), hash("one"));
}

// The trace says which host has how many cores: to the bits of one host, on which that says
// nothing.
TEST_F(HostsCommand, FollowsATraceOfTheHostsCores) {
  folder_.write("uneven.csv",
                "step,batchsize,cores\n0,128,4+2+2\n1,256,0+3+0\n2,96,1+5\n3,64,\n4,128,7\n");
  const std::vector<std::string> arguments{"--model",        "softmax", "--trace", "uneven.csv",
                                           "--on-trace-end", "cycle",   "--rule",  "adascale"};
  ASSERT_EQ(train("one", arguments).code, 0);
  for (const int hosts : {2, 3, 4}) {
    const std::string run = fmt::format("on-{}", hosts);
    const ProgramResult result = launch(hosts, run, arguments);
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(hash(run), hash("one")) << hosts;
    EXPECT_EQ(test::read_file(folder_.path() / run / "trace.csv"),
              test::read_file(folder_.path() / "one" / "trace.csv"));
  }
}

TEST_F(HostsCommand, GoesOnInOtherNumbers) {
  const std::vector<std::string> model{"--model", "softmax", "--quiet"};
  ASSERT_EQ(train("one", {"--model", "softmax", "--quiet", "--epochs", "3"}).code, 0);
  ASSERT_EQ(launch(3, "run", model).code, 0);
  const ProgramResult resumed =
      test::rubato({"launch", "--hosts", "2", "--", "train", "--resume", "run", "--epochs", "3"},
                   folder_.path());
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("continuing after step"));
  EXPECT_EQ(hash("run"), hash("one"));
  ASSERT_EQ(
      test::rubato({"train", "--resume", "run", "--epochs", "4", "--quiet"}, folder_.path()).code,
      0);
}

TEST_F(HostsCommand, SaysWhoseTheTimelineIs) {
  const ProgramResult result =
      launch(2, "run", {"--model", "softmax", "--threads", "1", "--timeline", "steps=2..4"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out,
              HasSubstr("\n2 hosts\nthe timeline has the threads of this host alone, host 0\n"));
  EXPECT_THAT(test::read_file(file("run") / "timeline.json"), HasSubstr("host 0"));
}

TEST_F(HostsCommand, SaysWhichHostIsWrong) {
  const ProgramResult result = at_free_port(
      "\"$0\" train --model softmax --hosts 2 --rank 1 --rendezvous 127.0.0.1:PORT "
      "--lr 0.5 --out b 2>b.err & "
      "\"$0\" train --model softmax --hosts 2 --rendezvous 127.0.0.1:PORT --out a; "
      "echo $?; wait $!; echo $?; cat b.err >&2; [ ! -e a ]",
      folder_.path());
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, EndsWith("2\n2\n"));
  EXPECT_EQ(result.err,
            "rubato train: host 0: host 1 has another --lr (0.5, here 0.01); accepted: the same on "
            "all hosts\n"
            "rubato train: host 1: host 0 has another --lr (0.01, here 0.5); accepted: the same on "
            "all hosts\n");
}

TEST_F(HostsCommand, ComparesDataAndTrace) {
  test::write_idx_images(folder_, "other", "train", 320, 12);
  test::write_idx_images(folder_, "other", "t10k", 80, 12);
  const ProgramResult data = at_free_port(
      "for d in data other; do \"$0\" train --data mnist:$d --trace 64 --model softmax --hosts 2 "
      "--rank "
      "$([ $d = data ]; echo $?) --rendezvous 127.0.0.1:PORT --quiet --out a & done; wait",
      folder_.path());
  EXPECT_THAT(data.err, AllOf(HasSubstr("host 0: host 1 has another test data ("),
                              HasSubstr("host 1: host 0 has another test data (")));
  const ProgramResult trace = at_free_port(
      "for t in 64 128; do \"$0\" train --data mnist:data --trace $t --model softmax --hosts 2 "
      "--rank $([ $t = 64 ]; echo $?) --rendezvous 127.0.0.1:PORT --quiet --out b & done; wait",
      folder_.path());
  EXPECT_THAT(trace.err, HasSubstr("has another trace ("));
}

// A signal comes to the launcher alone, which passes it on, or to all processes of a job, as
// systemd and Slurm send it.
TEST_F(HostsCommand, StopsOnceAfterASignal) {
  for (const auto& sent : {std::pair(SIGINT, false), std::pair(SIGTERM, true),
                           std::pair(SIGHUP, true), std::pair(SIGINT, true)}) {
    const int number = sent.first;
    const bool to_all = sent.second;
    std::filesystem::remove_all(file("run"));
    const ProgramResult result =
        launch(3, "run", endless(), [&, this](pid_t process, const std::filesystem::path&) {
          wait_for_steps();
          const std::string all =
              fmt::format("kill -{0} $(pgrep --parent {1}) {1}; kill -{0} {1}", number, process);
          to_all ? std::system(all.c_str()) : kill(process, number);
        });
    EXPECT_EQ(result.code, 128 + number) << result.err;
    EXPECT_THAT(result.err, AllOf(HasSubstr("stopped by a signal"),
                                  HasSubstr("to continue: rubato train --resume run")));
    EXPECT_FALSE(std::filesystem::is_empty(file("run") / "checkpoints"));
  }
}

// Of whichever host: the one that writes does it.
TEST_F(HostsCommand, WritesACheckpointWhenItIsAskedTo) {
  const ProgramResult result =
      launch(2, "run", endless(), [this](pid_t process, const std::filesystem::path&) {
        wait_for_steps();
        static_cast<void>(std::system(
            fmt::format("kill -USR1 $(pgrep --parent {} --full -- '--rank 1 ')", process).c_str()));
        test::wait_until([this] { return std::filesystem::exists(file("run") / "checkpoints"); });
        kill(process, SIGTERM);
      });
  EXPECT_EQ(result.code, 143) << result.err;
}

// The others write down how far they are, and say who is gone.
TEST_F(HostsCommand, EndsWhenAHostIsKilled) {
  const ProgramResult result =
      launch(3, "run", endless(), [this](pid_t process, const std::filesystem::path&) {
        wait_for_steps();
        static_cast<void>(std::system(
            fmt::format("kill -9 $(pgrep --parent {} --full -- '--rank 1 ')", process).c_str()));
      });
  EXPECT_EQ(result.code, 128 + SIGKILL) << result.err;
  EXPECT_THAT(result.err, ContainsRegex("host 0: host [12] is lost: "));
  EXPECT_THAT(result.err, ContainsRegex("the checkpoint is run/checkpoints/"));
}

// They meet, and then one has no way to the other: not a mistake in the options.
TEST_F(HostsCommand, AreLostWhereTheyCannotConnect) {
  const test::NetworkOfItsOwn network;
  if (!network.is_there()) GTEST_SKIP() << "no network namespaces: not root, or no ip";
  const test::FreePort port;
  const auto host = [&](int rank, const std::string& interface) {
    return command({"train"}, "run",
                   {"--model", "softmax", "--hosts", "2", "--rank", fmt::to_string(rank),
                    "--rendezvous", fmt::format("{}:{}", network.here(), port.number()),
                    "--host-timeout", "20", "--interface", interface});
  };
  // The first host is at the loopback of this machine, which is not that of the other one.
  test::BackgroundProgram first(host(0, "127.0.0.1"), folder_.path());
  test::BackgroundProgram other(host(1, network.there()), folder_.path(), network.name());
  first.end();
  other.end();
  EXPECT_EQ(first.code(), 28) << first.output();
  EXPECT_EQ(other.code(), 28) << other.output();
  for (const auto* const lost : {&first, &other}) {
    EXPECT_THAT(lost->output(), HasSubstr("the hosts cannot connect with each other: "));
  }
}

TEST_F(HostsCommand, MeetsAtARendezvousOfItsOwn) {
  const ProgramResult result = at_free_port(
      "\"$0\" rendezvous --port PORT > port & server=$!; until [ -s port ]; do sleep 0.1; done; "
      "for run in first second; do hosts=; for rank in 0 1; do \"$0\" train --model softmax "
      "--epochs 1 "
      "--hosts 2 --rank $rank --rendezvous 127.0.0.1:PORT/$run --out $run --quiet & "
      "hosts=\"$hosts $!\"; done; wait $hosts; done; kill $server; wait $server; echo $?; cat port",
      folder_.path());
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, StartsWith("0\nhosts may meet at port "));
  EXPECT_EQ(hash("first"), hash("second"));
}

// To somebody who takes no part in it.
class ShownHosts : public HostsCommand {
 protected:
  void SetUp() override {
    HostsCommand::SetUp();
    folder_.write("token", "open sesame\n");
    server_ = std::make_unique<test::BackgroundRendezvous>(
        folder_.path(), std::vector<std::string>{"--port", "0", "--token-file", "token"});
    rendezvous_ = fmt::format("127.0.0.1:{}", server_->port());
  }
  void wait_until(const std::function<bool()>& condition) const {
    test::wait_until(condition, [this] {
      std::string told = show().out + show().err;
      for (const auto& host : hosts_) told += host->output();
      return told;
    });
  }
  test::BackgroundProgram& start_host() {
    hosts_.push_back(std::make_unique<test::BackgroundProgram>(
        command({"train"}, "run",
                {"--model=softmax", "--epochs=1000000", "--threads=1", "--hosts=2", "--min-hosts=1",
                 "--max-hosts=2", "--rendezvous", rendezvous_ + "/spring", "--token-file=token",
                 "--cores=6"}),
        folder_.path()));
    return *hosts_.back();
  }
  [[nodiscard]] ProgramResult show(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"hosts", rendezvous_ + "/spring", "--token-file", "token"});
    return test::rubato(more, folder_.path());
  }
  // Null while there is no such run.
  [[nodiscard]] nlohmann::json shown() const {
    const ProgramResult result = show({"--json"});
    return result.code == 0 ? nlohmann::json::parse(result.out) : nlohmann::json();
  }

  std::unique_ptr<test::BackgroundRendezvous> server_;
  std::string rendezvous_;
  std::vector<std::unique_ptr<test::BackgroundProgram>> hosts_;
};

TEST_F(ShownHosts, ShowsHowItStands) {
  test::BackgroundProgram& one = start_host();
  nlohmann::json json;
  wait_until([&] {
    json = shown();
    return json.is_object() && json["there"] == 1;
  });
  test::expect_fields(json, R"({"state": "waits", "wanted": 2, "group": 0, "last_step": null})");
  EXPECT_EQ(json["hosts"][0]["rank"], nullptr);

  test::BackgroundProgram& other = start_host();
  wait_until([&] {
    json = shown();
    return json["state"] == "trains" && json["last_step"].is_number() && json["last_step"] > 1 &&
           json["writer"].is_object();
  });
  EXPECT_GE(json["group"], 1);
  EXPECT_EQ(json["cores"], 6);
  EXPECT_EQ(json["writer"]["folder"], file("run").string());
  EXPECT_EQ(json["writer"]["host"], 1);
  ASSERT_EQ(json["hosts"].size(), 2U);
  EXPECT_EQ(json["hosts"][0]["process"], one.process());
  EXPECT_EQ(json["hosts"][1]["process"], other.process());
  EXPECT_EQ(json["hosts"][1]["rank"], 1);
  EXPECT_EQ(json["hosts"][1]["address"], "127.0.0.1");
  // Whoever looks takes no part.
  EXPECT_EQ(shown()["group"], json["group"]);
  const std::int64_t before = json["last_step"];
  wait_until([&] { return shown()["last_step"] > before; });

  other.end(SIGKILL);
  wait_until([&] {
    json = shown();
    return json["state"] == "trains" && json["hosts"].size() == 1;
  });
  one.signal(SIGINT);
  wait_until([&] { return !one.runs(); });
  json = shown();
  EXPECT_EQ(json["state"], "stopped");
  EXPECT_EQ(json["hosts"][0]["state"], "left");
  // The last of them is told before a host leaves.
  const std::string metrics = test::read_file(file("run") / "metrics.jsonl");
  const std::string last_step = fmt::format("\"step\":{},", json["last_step"].get<int>() - 1);
  EXPECT_NE(metrics.find(last_step), std::string::npos) << last_step;
  EXPECT_EQ(metrics.find(fmt::format("\"step\":{},", json["last_step"].get<int>())),
            std::string::npos);
  EXPECT_THAT(show().out, StartsWith("run         was stopped by a signal\ngroup "));
}

TEST_F(ShownHosts, AreNotShownToEverybody) {
  const auto answer = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "hosts");
    const ProgramResult result = test::rubato(arguments, folder_.path());
    EXPECT_EQ(result.out, "");
    return fmt::format("{} {}", result.code, result.err);
  };
  EXPECT_EQ(answer({rendezvous_ + "/spring"}),
            fmt::format("2 rubato hosts: cannot reach the rendezvous {}: it is served with another "
                        "token; accepted: the same on all hosts\n",
                        rendezvous_));
  server_->end(SIGTERM);
  EXPECT_EQ(answer({rendezvous_ + "/spring", "--token-file", "token"}),
            fmt::format("28 rubato hosts: cannot reach the rendezvous {}: Connection refused; "
                        "accepted: HOST:PORT/NAME at a `rubato rendezvous`\n",
                        rendezvous_));
  EXPECT_EQ(answer({"node0:29500"}),
            "2 rubato hosts: 'node0:29500' names no run; accepted: HOST:PORT/NAME\n");
}

TEST_F(HostsCommand, IsStartedByTorchrun) {
  // Makes the store as torchrun does.
  if (std::system("/usr/bin/python3 -c '"
                  "import torch.distributed.run as run; from torch.distributed import TCPStore; "
                  "TCPStore(\"127.0.0.1\", 0, 1, True)' 2>/dev/null") != 0) {
    GTEST_SKIP() << "no torchrun: /usr/bin/python3 has no torch, or one whose torchrun needs libuv "
                    "and does not have it, as Debian 13's";
  }
  // That of Debian 12, under Python 3.11, ends where it is not told what to do with the output.
  const ProgramResult result = at_free_port(
      "/usr/bin/python3 -m torch.distributed.run --master_port PORT --nproc_per_node 3 "
      "--redirects 1 --tee 2 --no_python "
      "\"$0\" train --model softmax --epochs 1 --hosts env --out run --quiet 2>err || cat err >&2",
      folder_.path());
  EXPECT_EQ(result.err, "");
  expect_same_as_one_epoch();
}

TEST_F(HostsCommand, IsStartedByMpirun) {
  if (std::system("mpirun --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no mpirun";
  const ProgramResult result = at_free_port(
      "mpirun --allow-run-as-root --oversubscribe -np 3 \"$0\" train --model softmax --epochs 1 "
      "--hosts env --rendezvous 127.0.0.1:PORT --out run --quiet",
      folder_.path());
  EXPECT_EQ(result.code, 0) << result.err;
  expect_same_as_one_epoch();
}

TEST_F(HostsCommand, SaysWhatIsAccepted) {
  const auto error = [&](const std::vector<std::string>& arguments) {
    return test::rubato(arguments, folder_.path()).err;
  };
  EXPECT_EQ(error({"train", "--hosts", "2", "--rendezvous", "here"}),
            "rubato train: --rendezvous: 'here' is not a rendezvous; accepted: HOST:PORT or "
            "HOST:PORT/NAME, such as 10.0.0.1:29500\n");
  EXPECT_EQ(error({"train", "--hosts", "2", "--min-hosts", "1", "--rendezvous", "here:29500/run"}),
            "rubato train: --min-hosts: any host may have to write the run folder, which needs a "
            "name; accepted: with --out FOLDER or --resume RUN\n");
  EXPECT_THAT(
      error({"train", "--model", "softmax", "--hosts", "2", "--rank", "1", "--token-file", "none"}),
      StartsWith("rubato train: host 1: --token-file: no token in 'none'; accepted: a file "
                 "with one line"));
  for (const std::vector<std::string>& launch :
       {std::vector<std::string>{"launch", "--hosts", "2"}, {"launch", "--", "plan"}}) {
    EXPECT_EQ(error(launch),
              "rubato launch: nothing to launch; accepted: rubato launch --hosts N -- train "
              "OPTIONS\n");
  }
  EXPECT_EQ(
      error({"launch", "--restarts", "3", "--", "train"}),
      "rubato launch: --restarts: a run does not continue without one of its hosts; accepted: "
      "with --min-hosts N\n");
  EXPECT_THAT(error({"rendezvous", "--port", "99999"}), StartsWith("rubato rendezvous: --port: "));
  EXPECT_EQ(test::rubato({"rendezvous", "--help"}).code, 0);
  EXPECT_EQ(test::rubato({"launch", "--help"}).code, 0);
}

TEST_F(HostsCommand, IsDocumented) {
  const std::string text = test::read_file(RUBATO_HOSTS_MD);
  const auto commands = test::rubato_commands(text);
  EXPECT_FALSE(commands.empty());
  constexpr std::string_view kTrace = "step,batchsize,cores\n0,256,4+2+2\n1,256,4+0+4\n2,96,3\n";
  ASSERT_THAT(text, HasSubstr(kTrace));
  folder_.write("uneven.csv", kTrace);
  for (const std::string& command : commands) {
    const ProgramResult result = test::rubato(test::words_of(command), folder_.path());
    EXPECT_EQ(result.code, 0) << command << "\n" << result.err;
  }
  // Those that need other machines have options that there are.
  for (const char* const option :
       {"--hosts", "--rank", "--rendezvous", "--interface", "--host-weight", "--host-timeout",
        "--token-file", "--min-hosts", "--max-hosts", "--on-term", "--continue"}) {
    EXPECT_THAT(text, HasSubstr(option));
    EXPECT_THAT(test::rubato({"train", "--help"}).out, HasSubstr(option));
  }
}

// A mistake in the options is that of all of them.
TEST_F(HostsCommand, LaunchAnswersWhatTheFirstThatFailedDid) {
  const ProgramResult result = launch(3, "run", {"--rule", "no-such-rule"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("no-such-rule"));
}

}  // namespace
}  // namespace rubato
