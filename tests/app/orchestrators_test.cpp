// The files for systemd, Slurm and Kubernetes (docs/orchestrators.md): their commands are run as
// these run them, are asked to end, and go on.

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <regex>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "app/background_program.hpp"
#include "app/small_training.hpp"
#include "support/free_port.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using test::ProgramResult;

std::string orchestrator_file(const std::string& name) {
  return test::read_file(fs::path(RUBATO_ORCHESTRATORS) / name);
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  EXPECT_THAT(text, HasSubstr(what));
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

class Orchestrators : public test::SmallTraining {
 protected:
  void SetUp() override {
    SmallTraining::SetUp();
    write_trace({32, 64, 160, 96});
    folder_.write("token", "open sesame\n");
    set_epochs(1'000'000);
    // As it is called in these files.
    fs::create_directory(file("bin"));
    fs::create_symlink(RUBATO_PROGRAM, file("bin") / "rubato");
    setenv("PATH", fmt::format("{}:{}", file("bin").string(), std::getenv("PATH")).c_str(), 1);
  }
  void set_epochs(int epochs) const {
    folder_.write("run.toml", fmt::format("data = \"mnist:data\"\ntrace = \"trace.csv\"\n"
                                          "on-trace-end = \"cycle\"\nminibatch = 8\n"
                                          "model = \"softmax\"\nthreads = 1\nepochs = {}\n",
                                          epochs));
  }
  // A program on the path, as a shell script.
  void write_tool(const std::string& name, const std::string& script) const {
    folder_.write("bin/" + name, "#!/bin/bash\n" + script + "\n");
    fs::permissions(file("bin") / name, fs::perms::owner_all);
  }
  void wait_for_steps(const std::string& run, std::size_t more = 20) const {
    const auto lines = [&] {
      const std::string text = test::read_file(file(run) / "metrics.jsonl");
      return static_cast<std::size_t>(std::ranges::count(text, '\n'));
    };
    const std::size_t wanted = lines() + more;
    test::wait_until([&] { return lines() >= wanted; });
  }
  // What a shell answers that is signalled, by `signal_all`, once the run has gone some steps.
  int end_in_the_middle(const std::string& script, const std::function<void(pid_t)>& signal_all) {
    return test::run_program("/bin/bash", {"-c", script}, folder_.path(),
                             [&](pid_t process, const fs::path&) {
                               wait_for_steps("run");
                               signal_all(process);
                             })
        .code;
  }
  // The same command brings the run, which has been ended, to its end: it is that of one process.
  void expect_ends(const std::string& script) {
    const std::string metrics = test::read_file(file("run") / "metrics.jsonl");
    const std::string last = metrics.substr(metrics.rfind("\"epoch\":"));
    const int epochs = std::stoi(last.substr(8)) + 2;
    set_epochs(epochs);
    const ProgramResult ended = test::run_program("/bin/bash", {"-c", script}, folder_.path());
    EXPECT_EQ(ended.code, 0) << ended.err;
    succeeds("train --config run.toml --out whole");
    EXPECT_EQ(hash("run"), hash("whole"));
  }
};

TEST_F(Orchestrators, OfSystemd) {
  const std::string unit = orchestrator_file("rubato@.service");
  std::smatch command;
  ASSERT_TRUE(std::regex_search(unit, command, std::regex("\nExecStart=/usr/bin/(.*)\n")));
  std::string script = "exec " + command[1].str();
  script = replaced(script, "/etc/rubato/%i.toml", "run.toml");
  script = replaced(script, "/var/lib/rubato/%i", "run");
  for (const int number : {SIGTERM, SIGKILL, SIGTERM}) {
    const int code = end_in_the_middle(script, [&](pid_t process) {
      // To each process of the unit: here there is one.
      kill(process, number);
      kill(process, number);
    });
    EXPECT_EQ(code, number == SIGTERM ? 143 : -1);
  }
  expect_ends(script);
  // Nothing is left to do.
  EXPECT_EQ(test::run_program("/bin/bash", {"-c", script}, folder_.path()).code, 0);
  // What does not help to repeat is not repeated.
  EXPECT_THAT(unit, HasSubstr("\nSuccessExitStatus=143\n"));
  EXPECT_THAT(unit, HasSubstr("\nRestartPreventExitStatus=2 21 22 30\n"));
  if (std::system("command -v systemd-analyze >/dev/null") != 0) {
    GTEST_SKIP() << "no systemd-analyze";
  }
  folder_.write("rubato@.service", replaced(unit, "/usr/bin/rubato", RUBATO_PROGRAM));
  const ProgramResult verified = test::run_program(
      "/bin/bash", {"-c", "systemd-analyze verify --man=no ./rubato@.service"}, folder_.path());
  EXPECT_EQ(verified.code, 0) << verified.err;
}

TEST_F(Orchestrators, OfSlurm) {
  const test::FreePort port;
  const std::string script =
      replaced(orchestrator_file("rubato.sbatch"), "29500", fmt::to_string(port.number()));
  folder_.write("job", script);
  // The hosts of a step on one machine. Slurm signals them; the batch script it leaves alone.
  write_tool("srun",
             "shift\nfor rank in 0 1; do SLURM_PROCID=$rank SLURM_NTASKS=2 \"$@\" & hosts+=($!); "
             "done\necho \"${hosts[@]}\" > hosts\ncode=0\nfor host in \"${hosts[@]}\"; do wait "
             "$host || code=$?; done\nexit $code");
  write_tool("scontrol", "if [[ $1 == show ]]; then echo 127.0.0.1; else echo \"$*\" >> queue; fi");
  const std::string command =
      "rm -f hosts; RUBATO_INTERFACE=lo SLURM_JOB_ID=7 SLURM_JOB_NODELIST=node "
      "SLURM_CPUS_PER_TASK=1 "
      "bash job";
  for (int i = 0; i < 2; ++i) {
    const int code = end_in_the_middle(command, [&](pid_t) {
      static_cast<void>(std::system(
          fmt::format("kill -TERM $(cat {})", (folder_.path() / "hosts").string()).c_str()));
    });
    EXPECT_EQ(code, 143);
  }
  EXPECT_EQ(test::read_file(file("queue")), "requeue 7\nrequeue 7\n");
  expect_ends(command);
  EXPECT_EQ(test::read_file(file("queue")), "requeue 7\nrequeue 7\n");
}

TEST_F(Orchestrators, OfKubernetes) {
  const std::string job = orchestrator_file("rubato.yaml");
  const std::size_t begin = job.find("              rubato train");
  const std::size_t end = job.find("          resources:", begin);
  ASSERT_NE(end, std::string::npos);
  const test::BackgroundProgram server({"rendezvous", "--port", "0", "--token-file", "token"},
                                       folder_.path());
  test::wait_until([&] { return server.output().ends_with('\n'); });
  const std::string said = server.output();
  const std::string port = said.substr(said.rfind(' ') + 1, said.rfind('\n') - said.rfind(' ') - 1);
  std::string pod =
      replaced(job.substr(begin, end - begin), "rubato-rendezvous:29500", "127.0.0.1:" + port);
  pod = replaced(pod, "/token/token", "token");
  pod = replaced(pod, "/runs/run.toml", "run.toml");
  pod = replaced(pod, "/runs/spring", "run");
  pod = replaced(pod, "--hosts 3", "--hosts 2");
  folder_.write("pod", pod);
  // Each is a process whose children are hosts, as a pod's.
  const std::string pods =
      "export POD_IP=127.0.0.1; sh pod & one=$!; sh pod & two=$!; echo $one $two > pods; "
      "wait $one; first=$?; wait $two; exit $((10 * first + $?))";
  const auto terminate = [&](const std::string& which) {
    static_cast<void>(std::system(
        fmt::format("kill -TERM $(cut -d' ' -f{} {})", which, (folder_.path() / "pods").string())
            .c_str()));
  };
  // One after the other: the run stops with the second. Neither is complete.
  const int code = end_in_the_middle(pods, [&](pid_t) {
    terminate("1");
    wait_for_steps("run");
    terminate("2");
  });
  EXPECT_EQ(code, 11);
  expect_ends(pods);
}

}  // namespace
}  // namespace rubato
