// `rubato diff`: its exit codes, what it prints, and runs of other kernels.

#include <string>

#include <gmock/gmock.h>

#include "app/run_program.hpp"
#include "app/small_training.hpp"
#include "base/machine/instruction_set.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using test::ProgramResult;
using test::Words;

class DiffCommand : public test::SmallTraining {
 protected:
  void train(const Words& more) const {
    const ProgramResult result =
        rubato(Words("train --data mnist:data --trace 64 --epochs 2 --quiet --threads 1") + more);
    ASSERT_EQ(result.code, 0) << result.err;
  }
};

TEST_F(DiffCommand, ExitsAsDiffDoes) {
  train("--model mlp --out a");
  train("--model mlp --out b --cores 2");
  train("--model mlp --out c --momentum 0.4");
  EXPECT_EQ(printed("diff a b --threads 1"),
            "a and b: 10 steps, the same bits (1 digest, the weights at the end)\n");
  EXPECT_EQ(printed("diff a b --quiet"), "");
  const ProgramResult different = rubato("diff a c --distance 3 --threads 1");
  EXPECT_EQ(different.code, 1) << different.err;
  EXPECT_EQ(different.err, "");
  EXPECT_THAT(different.out, AllOf(HasSubstr("a and c: the same bits after 1 step (1 repeated "
                                             "step)\nstep 2 differs in its update"),
                                   HasSubstr("\nreason: --momentum not set and 0.4\n"),
                                   HasSubstr("\ndistance: "), HasSubstr(" after 3 steps")));
  EXPECT_EQ(rubato("diff a c --quiet").code, 1);
  EXPECT_THAT(refusal("diff a"), HasSubstr("1 run is given; accepted: the folders of two runs"));
  EXPECT_THAT(refusal("diff a nowhere"), HasSubstr("no run in 'nowhere'"));
}

TEST_F(DiffCommand, ComparesOptions) {
  const Words good{"diff", "--good", "--data mnist:data --model mlp --trace 64"};
  const ProgramResult same = rubato(good + Words{"--bad",
                                                 "--model mlp --trace '64' --data "
                                                 "\"mnist:data\" --cores 2"});
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_THAT(same.out, StartsWith("repeating steps 1 to 24"));
  EXPECT_THAT(same.out, HasSubstr("good and bad: 24 steps, the same bits (24 repeated steps)\n"));
  EXPECT_THAT(refusal(good + Words{"--bad", "--model mlp --out x"}), HasSubstr("without --out"));
  EXPECT_THAT(refusal(good + Words{"--bad", "--model 'mlp"}), HasSubstr("no closing quote"));
  EXPECT_THAT(refusal(good + Words{"--bad", "--model mpl"}), HasSubstr("--bad: --model"));
  EXPECT_THAT(refusal(good), HasSubstr("not both of --good and --bad"));
  EXPECT_THAT(refusal("diff a b --steps 3"), HasSubstr("--steps"));
}

TEST_F(DiffCommand, NamesOtherKernels) {
  if (cpu_instruction_set() < InstructionSet::avx2) GTEST_SKIP() << "needs AVX2";
  train("--model mlp --engine libtorch --out a");
  train("--model mlp --engine libtorch --kernels portable --out b");
  if (hash("a") == hash("b")) GTEST_SKIP() << "both kernels give the same bits";
  const ProgramResult result = rubato("diff a b --json --threads 1");
  EXPECT_EQ(result.code, 1) << result.err;
  const auto found = nlohmann::json::parse(result.out);
  EXPECT_EQ(found["first"]["stage"], "kernels");
  EXPECT_EQ(found["equal_steps"], 0);
  EXPECT_THAT(found["first"]["options"], ElementsAre("kernels"));
  EXPECT_THAT(found["facts"].dump(), HasSubstr("kernels.wanted"));
  EXPECT_THAT(found["first"]["what"].get<std::string>(),
              HasSubstr("both have the same bits, but step 10 of b had others"));
}

TEST_F(DiffCommand, ComparesNetworksOfLibtorch) {
  train("--model mlp --engine libtorch --checkpoint-every 2steps --out a");
  const auto difference = [&](const std::string& name, const Words& change) {
    const ProgramResult fork =
        rubato(Words("train --from a@5 --quiet --threads 1 --out") + Words{name} + change);
    EXPECT_EQ(fork.code, 0) << fork.err;
    const ProgramResult result =
        rubato(Words("diff a --json --seeds --distance 4 --threads 1") + Words{name});
    EXPECT_EQ(result.code, 1) << result.err;
    const auto found = nlohmann::json::parse(result.out);
    EXPECT_EQ(found["equal_steps"], 5);
    EXPECT_EQ(found["distances"].size(), 4);
    return found["first"];
  };
  EXPECT_EQ(difference("seed", "--seed 9")["stage"], "samples");
  const auto smooth = difference("smooth", "--label-smoothing 0.1");
  EXPECT_EQ(smooth["stage"], "gradient");
  EXPECT_EQ(smooth["minibatch"], 1);
  EXPECT_GT(smooth["element"]["ulps"], 0);
}

}  // namespace
}  // namespace rubato
