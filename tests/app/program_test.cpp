#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "app/run_program.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using Arguments = std::vector<std::string>;
using test::ProgramResult;
using test::TempFolder;

TEST(Program, ExplainsItself) {
  for (const char* const arguments : {"--help", "-h", "help"}) {
    const ProgramResult result = test::rubato(arguments);
    EXPECT_EQ(result.code, 0);
    EXPECT_EQ(result.err, "");
    EXPECT_THAT(result.out, AllOf(HasSubstr("Usage: rubato COMMAND"), HasSubstr("\n  train "),
                                  HasSubstr("\n  plan ")));
  }
}

TEST(Program, ExplainsItselfWhenGivenNothing) {
  const ProgramResult result = test::rubato({});
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("Usage: rubato COMMAND"));
}

// The options that a help lists are those of docs/options.md.
TEST(Program, ExplainsItsCommands) {
  for (const auto& [command, usage] : {std::pair<std::string, std::string>{"plan", " [OPTIONS]"},
                                       {"train", " [OPTIONS]"},
                                       {"hosts", " HOST:PORT/NAME [OPTIONS]"}}) {
    const ProgramResult result = test::rubato({command, "--help"});
    EXPECT_EQ(result.code, 0);
    EXPECT_EQ(result.err, "");
    EXPECT_THAT(result.out, HasSubstr("Usage: rubato " + command + usage + "\n"));
    EXPECT_EQ(test::rubato("help " + command).out, result.out);
    // The help is what is wanted even where something else is wrong.
    EXPECT_EQ(test::rubato({command, "--cores", "0", "-h"}).out, result.out);
  }
}

TEST(Program, KeepsItsHelpWithinEightyColumns) {
  for (const char* const arguments :
       {"--help", "plan --help", "train --help", "bench reduce --help", "list --help",
        "watch --help", "plot --help", "doctor --help", "hosts --help", "conform --help"}) {
    std::string out = test::rubato(arguments).out;
    for (std::size_t end = 0; (end = out.find('\n')) != std::string::npos; out.erase(0, end + 1)) {
      EXPECT_LE(end, 80U) << out.substr(0, end);
    }
  }
}

TEST(Program, KnowsItsVersion) {
  const ProgramResult result = test::rubato("--version");
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, MatchesRegex("rubato [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

// What people try who know other programs.
TEST(Program, KnowsTheOptionsOfOthers) {
  const std::string version = test::rubato("--version").out;
  EXPECT_EQ(test::rubato("-V").out, version);
  EXPECT_EQ(test::rubato("version").out, version);
  EXPECT_EQ(test::rubato("trace help").out, test::rubato("trace --help").out);
  EXPECT_EQ(test::rubato("trace help show").out, test::rubato("trace show --help").out);
  const std::string training = "train --model quadratic:dim=8,samples=64 --epochs 1 -q --out ";
  const test::TempFolder folder;
  const auto quiet =
      test::rubato(training + "run --learning-rate=0.25 --minibatch 8 --trace 8", folder.path());
  EXPECT_EQ(quiet.code, 0) << quiet.err;
  EXPECT_EQ(quiet.out, "");
  EXPECT_THAT(test::read_file(folder.path() / "run/config.toml"), HasSubstr("lr = 0.25\n"));
  for (const auto& [arguments, message] : std::vector<std::pair<std::string, std::string>>{
           {"train --batch-size 64",
            "unknown option '--batch-size'; --trace N has the samples of a step, --minibatch N "
            "those "
            "of one pass of a core; see rubato train --help"},
           {"train --gpus=4",
            "unknown option '--gpus'; --cores N has the number of emulated cores;"},
           {"train --dry-run", "rubato plan shows what a trace will do, rubato simulate its time;"},
           {"compare --dry-run", "unknown option '--dry-run'; --only-plan trains nothing;"}}) {
    EXPECT_THAT(test::rubato(arguments).err, HasSubstr(message));
  }
}

TEST(Program, SuggestsTheNearestCommand) {
  const ProgramResult result = test::rubato("trian --cores 8");
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, StartsWith("rubato: unknown command 'trian'; did you mean 'train'? "
                                     "accepted: train, launch, "));
  EXPECT_THAT(test::rubato("--cores=8 plan").err,
              StartsWith("rubato: unknown option '--cores=8' before the command; accepted: --help, "
                         "--version, or a command: train, launch, "));
}

// Whatever is quoted of the arguments.
TEST(Program, SaysWhatIsWrongInOneLine) {
  const std::string word = "word\nof\x1b[31m lines" + std::string(5'000, 'x');
  for (const Arguments& arguments : {Arguments{word},
                                     {"-" + word},
                                     {"train", word},
                                     {"train", "--" + word},
                                     {"train", "--lr", word},
                                     {"train", "--epochs", word},
                                     {"train", "--seed", word},
                                     {"train", "--quiet=" + word},
                                     {"train", "--rule", word},
                                     {"train", "--rule", "lbsgd:" + word},
                                     {"train", "--rule", "lbsgd:warmup=" + word},

                                     {"train", "--model", word},
                                     {"train", "--data", word},
                                     {"train", "--optimizer", word},
                                     {"train", "--hosts", "2", "--rendezvous", word},
                                     {"data", word},
                                     {"list", word},
                                     {"completion", word},
                                     {"hosts", word},
                                     {"hosts", word, word},
                                     {"hosts", "a:1", word},
                                     {"bench", word},
                                     {"metrics", "run", "--kind", word},

                                     {"plot", "run", "--out", word}}) {
    const ProgramResult result = test::rubato(arguments);
    EXPECT_EQ(result.code, 2) << result.err;
    EXPECT_EQ(result.err.find('\n') + 1, result.err.size()) << result.err;
    EXPECT_THAT(result.err, Not(HasSubstr("\x1b")));
    EXPECT_LT(result.err.size(), 700U) << result.err;
    EXPECT_THAT(result.err, HasSubstr("word?of?[31m"));
  }
}

// As another user, where this one is root, whom no rights bind.
TEST(Program, SaysThatAFolderIsShut) {
  const TempFolder folder;
  std::filesystem::create_directory(folder.path() / "shut");
  folder.write("shut/file", "step,batchsize\n0,64\n");
  std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
  std::filesystem::permissions(folder.path() / "shut", std::filesystem::perms::none);
  const std::string as =
      geteuid() == 0 ? "setpriv --reuid 65534 --regid 65534 --clear-groups " : "";
  const auto error = [&](const std::string& arguments) {
    return test::shell("exec " + as + "\"$0\" " + arguments, folder.path()).err;
  };
  if (error("metrics shut/file").find("Permission denied") == std::string::npos) {
    GTEST_SKIP() << "no other user can start the program: " << error("metrics shut/file");
  }
  for (const auto& [arguments, place] : std::map<std::string, std::string>{
           {"train --trace shut/file", "train: --trace: cannot look for shut/file"},
           {"trace show shut/file", "trace show: cannot look for shut/file"},
           {"train --data csv:shut/file", "train: --data: cannot look for shut/file"},
           {"train --data tensors:shut/a/file.pt", "train: --data: cannot look for shut/a/file.pt"},
           {"train --data text:shut/file", "train: --data: cannot look for shut/file"},
           {"train --data images:shut/a", "train: --data: cannot look for shut/a"},
           {"train --data mnist:shut/a", "train: --data: cannot look for shut/a"},
           {"train --data mnist:shut", "train: shut: cannot look into it"},
           {"train --data images:shut", "train: shut"},
           {"train --data cifar10:shut", "train: shut/data_batch_1.bin"},
           {"train --model script:shut/file", "train: --model: cannot look for shut/file"},
           {"train --weights shut/file", "train: --weights: cannot look for shut/file"},
           {"train --plugin shut/file", "train: --plugin: cannot look for shut/file"},
           {"watch shut/run", "watch: shut/run: cannot look for it"},
           {"plot shut/run", "plot: shut/run: cannot look for it"}}) {
    // A program that cannot train does not look into it.
    if (!RUBATO_TORCH && place.starts_with("train: shut")) continue;
    EXPECT_THAT(error(arguments), StartsWith("rubato " + place + ": Permission denied; accepted: "))
        << arguments;
  }
  std::filesystem::permissions(folder.path() / "shut", std::filesystem::perms::owner_all);
}

TEST(Program, LoadsNoLibtorch) {
  const ProgramResult result = test::run_program("/usr/bin/ldd", {RUBATO_PROGRAM});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("libc.so"), Not(HasSubstr("torch")), Not(HasSubstr("libc10"))));
}

TEST(Program, SaysWhenItsOutputIsLost) {
  for (const char* arguments :
       {"--help", "--version", "plan", "plan --json", "plan --help", "train --help", "list",
        "list --json", "bench --help", "bench reduce --help"}) {
    test::expect_lost_output_is_said(arguments);
  }
}

// The reader has what they wanted, as with git. The pipe is closed before anything is written, so
// that nothing depends on who is faster.
TEST(Program, AClosedPipeIsNotWorthAMessage) {
  const TempFolder folder;
  std::filesystem::path pipe = folder.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string closed =
      "exec 3<>pipe 4>pipe 3<&-; exec \"$0\" ";  // 4 is the end that is written to
  for (const char* arguments : {"plan", "--help", "train --help", "list --json"}) {
    const ProgramResult result = test::shell(closed + arguments + " >&4", folder.path());
    EXPECT_EQ(result.signal, 0);
    EXPECT_EQ(result.code, 24);
    EXPECT_EQ(result.err, "") << arguments;
  }
  // Also when there is nobody to be told.
  EXPECT_EQ(test::shell(closed + "plan >&4 2>&4", folder.path()).code, 24);
  EXPECT_EQ(test::shell(closed + "plan --cores=0 2>&4", folder.path()).code, 2);
}

TEST(Program, AFileSizeLimitIsOutputThatIsLost) {
  const TempFolder folder;
  const ProgramResult result =
      test::shell("ulimit -f 1; exec \"$0\" plan --json >plan.json", folder.path());
  EXPECT_EQ(result.signal, 0);
  EXPECT_EQ(result.code, 24);
  EXPECT_EQ(result.err, "rubato plan: cannot write the output: File too large\n");
}

// Nothing that a user can cause is an internal error.
TEST(Program, SaysThatTheWorkingFolderIsGone) {
  const TempFolder folder;
  for (const char* arguments :
       {"train --model softmax", "train --model softmax --out run", "compare --model softmax"}) {
    const ProgramResult result = test::shell(
        std::string("mkdir gone && cd gone && rmdir ../gone && exec \"$0\" ") + arguments,
        folder.path());
    EXPECT_EQ(result.code, 2) << arguments;
    EXPECT_THAT(result.err, HasSubstr(": the working folder cannot be found: ")) << arguments;
  }
}

TEST(Program, RefusesNamesThatNoConfigurationCanHold) {
  const TempFolder folder;
  folder.write("x\xff.csv", "x,y\n1,0\n2,1\n3,0\n4,1\n5,0\n6,1\n7,0\n8,1\n");
  const auto trained = [&](const std::string& arguments) {
    return test::rubato("train --model softmax --epochs 1 --out run --quiet " + arguments,
                        folder.path());
  };
  const ProgramResult refused =
      trained("--data csv:x\xff.csv --trace 4 --ref-batch 4 --minibatch 2");
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.err,
            "rubato train: --data: a configuration file cannot hold text that is not UTF-8; "
            "accepted: names in UTF-8\n");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "run"));
  // A trace is copied.
  folder.write("t\xff.csv", "step,batchsize,cores\n0,64,2\n");
  EXPECT_EQ(trained("--trace t\xff.csv --on-trace-end hold").code, 0);
  // Printed text has another character there.
  const ProgramResult shown = test::rubato({"trace", "show", "t\xff.csv", "--json"}, folder.path());
  EXPECT_THAT(shown.out, HasSubstr("t\xef\xbf\xbd.csv"));
}

TEST(Program, TrainsOnASmallStack) {
  const TempFolder folder;
  const auto hash_with = [&](const std::string& limit) {
    const ProgramResult result =
        test::shell(limit + "exec \"$0\" train --model softmax --epochs 1 --verbose --out run" +
                        std::to_string(limit.size()),
                    folder.path());
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out.substr(result.out.find("SHA-256"), 75);
  };
  EXPECT_EQ(hash_with("ulimit -s 256; "), hash_with(""));
}

// The program that reads it may start once more, or start another one.
TEST(Program, TakesItsConfigurationFromAPipe) {
  const TempFolder folder;
  const std::string config = "<<'END'\nmodel = \"softmax\"\nepochs = 1\nseed = 7\nEND\n";
  for (const auto& [name, option] : {std::pair("a", "--config /dev/stdin "),
                                     {"b", "--config=/dev/fd/3 3"},
                                     {"c", "--kernels portable --config /dev/stdin "}}) {
    const ProgramResult result =
        test::shell(fmt::format("exec \"$0\" train --quiet --out {} {}{}", name, option, config),
                    folder.path());
    EXPECT_EQ(result.code, 0) << option << result.err;
    EXPECT_THAT(test::read_file(folder.path() / name / "config.toml"),
                AllOf(HasSubstr("seed = 7\n"), HasSubstr("model = \"softmax\"\n")));
  }
  const ProgramResult piped = test::shell(
      "mkfifo pipe; printf 'epochs = 0\n' > pipe & exec \"$0\" train --config pipe", folder.path());
  EXPECT_THAT(piped.err, HasSubstr(":1: epochs: '0' is out of range; accepted: a whole number "));
}

// Portable kernels need a second start, which finds the pipe as it was.
TEST(Program, TakesItsTraceFromAPipe) {
  const TempFolder folder;
  for (const std::string kernels : {"native", "portable"}) {
    const ProgramResult result = test::shell(
        fmt::format("printf 'step,batchsize\n0,256\n' | \"$0\" train --model softmax --epochs 1 "
                    "--trace /dev/stdin --on-trace-end hold --quiet --kernels {0} --out {0}",
                    kernels),
        folder.path());
    EXPECT_EQ(result.code, 0) << kernels << result.err;
    EXPECT_EQ(test::read_file(folder.path() / kernels / "trace.csv"), "step,batchsize\n0,256\n");
  }
}

// A copy of the program in a folder of its own, where it finds what a test puts beside it.
class Installed : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_.path() / "bin");
    std::filesystem::copy_file(RUBATO_PROGRAM, program_);
  }
  // A rubato-train that prints its arguments.
  void install(const std::filesystem::path& name) const {
    const auto file = folder_.write(name, "#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 21\n");
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }

  const TempFolder folder_;
  const std::filesystem::path program_ = folder_.path() / "bin" / "rubato";
};

TEST_F(Installed, WithoutLibtorchCannotTrain) {
  const ProgramResult result = test::run_program(program_, {"train"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err,
              AllOf(StartsWith("rubato train: this build is without libtorch and cannot train"),
                    HasSubstr((folder_.path() / "bin").string())));
  EXPECT_EQ(test::run_program(program_, "train --help").code, 0);
}

TEST_F(Installed, TheDoctorSaysThatItCannotTrain) {
  const ProgramResult result = test::run_program(program_, "doctor --threads=1");
  EXPECT_THAT(result.out, ContainsRegex("\nnote +BLAS +cannot be seen: this build is without"));
  EXPECT_EQ(result.err, "");
}

TEST_F(Installed, TheDoctorGoesByTheThreadsAskedFor) {
  const ProgramResult result = test::run_program(program_, "doctor --threads=4096 --json");
  const auto report = nlohmann::json::parse(result.out);
  EXPECT_EQ(report["facts"]["threads"], 4096);
  EXPECT_EQ(result.code, 26) << "no machine has so many";
}

TEST_F(Installed, BecomesTheProgramInLibexecOrBesideIt) {
  for (const char* const place : {"libexec/rubato/rubato-train", "bin/rubato-train"}) {
    install(place);
    const ProgramResult result =
        test::run_program(program_, {"train", "--cores", "4", "--out=a b", "--quiet"});
    EXPECT_EQ(result.code, 21);
    EXPECT_EQ(result.out, "<train><--cores><4><--out=a b><--quiet>");
    std::filesystem::remove(folder_.path() / place);
  }
}

TEST_F(Installed, LeavesAPipeToTheProgramThatTrains) {
  install("bin/rubato-train");
  const ProgramResult result = test::run_program(
      "/bin/sh", {"-c", "printf 'unread' | \"$0\" train --trace=/dev/stdin", program_});
  EXPECT_EQ(result.code, 21);
  EXPECT_EQ(result.out, "<train><--trace=/dev/stdin>");
}

TEST_F(Installed, SaysWhyAProgramDoesNotStart) {
  const auto file = folder_.write("bin/rubato-train",
                                  "\x7F"
                                  "ELF no program");
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  const ProgramResult result = test::run_program(program_, {"train"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("rubato train: cannot start " + file.string() + ": "));
}

}  // namespace
}  // namespace rubato
