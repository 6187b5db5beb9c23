// Which host a process is, from options and from the environment.

#include "clients/app/hosts/host_arguments.hpp"

#include <map>

#include <gmock/gmock.h>

#include "app/run_program.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato::app {
namespace {

using Variables = std::map<std::string, std::string>;

HostArguments read(const test::Words& arguments, const Variables& variables = {}) {
  HostArguments hosts;
  CommandLine line("rubato train", "");
  HostOptions options(hosts, [&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  });
  options.define(line);
  line.parse(arguments.all());
  options.finish(line);
  return hosts;
}

TEST(HostArguments, AreOptions) {
  EXPECT_EQ(read({}), HostArguments());
  EXPECT_FALSE(read({}).several());
  EXPECT_EQ(
      read("--hosts 3 --rank 2 --rendezvous node0:29000/mine --interface eth1 --host-weight 0.5 "
           "--host-timeout 2.5 --token-file t"),
      (HostArguments{.meeting = {.count = 3,
                                 .rank = 2,
                                 .address = "node0",
                                 .port = 29000,
                                 .run = "mine",
                                 .interface = "eth1",
                                 .weight = 0.5,
                                 .timeout = std::chrono::milliseconds(2500)},
                     .token_file = "t"}));
  // What is said of an environment counts only where it is asked for.
  EXPECT_EQ(read({}, {{"RANK", "1"}, {"WORLD_SIZE", "4"}}), HostArguments());
}

TEST(HostArguments, OfTorchrun) {
  const Variables torchrun{{"RANK", "1"},
                           {"WORLD_SIZE", "4"},
                           {"MASTER_ADDR", "node7"},
                           {"MASTER_PORT", "29400"},
                           {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                           {"TORCHELASTIC_RUN_ID", "ab"},
                           {"TORCHELASTIC_RESTART_COUNT", "2"},
                           {"SLURM_PROCID", "9"},
                           {"SLURM_NTASKS", "10"}};
  EXPECT_EQ(read("--hosts env", torchrun).meeting, (C10dOptions{.count = 4,
                                                                .rank = 1,
                                                                .address = "node7",
                                                                .port = 29400,
                                                                .run = "ab/2",
                                                                .is_tcp_store = true}));
  EXPECT_EQ(read("--hosts env --rank 3 --rendezvous [::1]:7", torchrun).meeting,
            (C10dOptions{.count = 4, .rank = 3, .address = "::1", .port = 7}));
}

TEST(HostArguments, OfMpirunAndSrun) {
  EXPECT_EQ(
      read("--hosts env", {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "3"}}).meeting,
      (C10dOptions{.count = 3, .rank = 1}));
  EXPECT_EQ(
      read("--hosts env", {{"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "3"}, {"MASTER_PORT", "1"}})
          .meeting,
      (C10dOptions{.count = 3, .rank = 2, .port = 1}));
  // One of them alone trains alone, whatever is said of the others.
  EXPECT_FALSE(read("--hosts env --interface lo", {{"RANK", "0"}, {"WORLD_SIZE", "1"}}).several());
}

TEST(HostArguments, ThatContradictEachOtherAreErrors) {
  struct Case {
    std::string arguments;
    std::string error;
    Variables variables{};
  };
  for (const Case& each : std::vector<Case>{
           {"--hosts env",
            "--hosts env: no launcher's variables are in the environment; accepted: "},
           {"--hosts env", "--hosts env: no launcher's variables", {{"RANK", "0"}}},
           {"--hosts env", "RANK in the environment: ", {{"RANK", "x"}, {"WORLD_SIZE", "2"}}},
           {"--hosts env", "WORLD_SIZE in the environment: ", {{"RANK", "0"}, {"WORLD_SIZE", "0"}}},
           {"--hosts env",
            "--rank 2: there are 2 hosts; accepted: 0 to 1",
            {{"RANK", "2"}, {"WORLD_SIZE", "2"}}},
           {"--rank 1", "--rank 1: there is 1 host; accepted: with --hosts N"},
           {"--token-file x", "--token-file: there is one host; accepted: with --hosts N"},
           {"--on-term stop", "--on-term: all stop where hosts do not come and go"},
           {"--max-hosts 3",
            "--max-hosts: the hosts do not come and go; accepted: with --min-hosts"},
           {"--hosts 2 --min-hosts 3",
            "--min-hosts 3 --hosts 2 --max-hosts 3; accepted: each at least the one before it"},
           {"--hosts 2 --min-hosts 1 --rank 1", "--rank: hosts that come and go are "},
           {"--hosts 2 --min-hosts 1", "--min-hosts: hosts that come and go cannot meet at one"},
           {"--hosts 0", "--hosts: "},
           {"--hosts 2 --rendezvous here", "--rendezvous: "},
           {"--hosts 2 --host-timeout 0.5", "--host-timeout: "},
           {"--hosts 2 --rendezvous 29500", "--rendezvous: "},
           {"--hosts 2 --rendezvous :29500", "--rendezvous: "},
           {"--hosts 2 --rendezvous a:", "--rendezvous: "},
           {"--hosts 2 --rendezvous a:b", "--rendezvous: "},
           {"--hosts 2 --rendezvous a:0", "--rendezvous: "},
           {"--hosts 2 --rendezvous a:1/", "--rendezvous: "}}) {
    EXPECT_THAT(error_of([&] { return read(each.arguments, each.variables); }),
                StartsWith(each.error))
        << each.arguments;
  }
}

TEST(HostArguments, HaveATokenOfOneLine) {
  const test::TempFolder folder;
  EXPECT_EQ(token_in(folder.write("a", "open sesame\n")), "open sesame");
  EXPECT_EQ(token_in(folder.write("b", "open sesame")), "open sesame");
  for (const std::string text : {"", "\n", "two\nlines\n"}) {
    EXPECT_THAT(error_of([&] { return token_in(folder.write("c", text)); }),
                StartsWith("--token-file: no token in '"));
  }
}

}  // namespace
}  // namespace rubato::app
