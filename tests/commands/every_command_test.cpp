// One way through every command, as somebody may take it who has just installed the program: that
// each works here. What each does beyond that is tested where it belongs.
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include "app/run_program.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using test::ProgramResult;
using test::TempFolder;

struct Use {
  std::string_view command;
  // For a shell whose $0 is the program.
  std::string_view line;
  // A regular expression of what it prints.
  std::string_view prints;
};

// For what the test is called where it fails.
std::ostream& operator<<(std::ostream& out, const Use& use) {
  return out << use.command;
}

constexpr Use kUses[]{
    {"train",
     R"("$0" train --epochs 1 --out run && "$0" train --resume run --epochs 2 2>/dev/null)",
     "trained 2 epochs: .*\ntest accuracy [89][0-9]"},
    {"launch", R"("$0" launch --hosts 2 -- train --model softmax --epochs 1 --out run 2>/dev/null)",
     "\ntest accuracy [78][0-9]"},
    {"rendezvous", R"("$0" rendezvous --port 0 --address 127.0.0.1 >served & trap "kill $!" EXIT
       until grep -q 'at port' served; do sleep 0.05; done
       "$0" train --model softmax --epochs 1 --out run --hosts 1 --min-hosts 1 \
         --rendezvous 127.0.0.1:$(grep -o '[0-9]*$' served)/first 2>/dev/null)",
     "\ntest accuracy [78][0-9]"},
    {"hosts", R"("$0" rendezvous --port 0 --address 127.0.0.1 >served & trap "kill $!" EXIT
       until grep -q 'at port' served; do sleep 0.05; done
       at=127.0.0.1:$(grep -o '[0-9]*$' served)/first
       "$0" train --model softmax --epochs 1 --out run --hosts 1 --min-hosts 1 --rendezvous $at --quiet
       "$0" hosts $at)",
     "last step +48"},
    {"plan", R"("$0" plan --trace 128 --cores 4 --epoch 1)", "11,904 +96 +100.0 %"},
    {"data", R"("$0" data get mnist --from http://127.0.0.1:1 2>&1 || test $? -eq 31)",
     "after 0 of 9912422 bytes"},
    {"trace", R"("$0" trace show spot:most=64,seed=1)", "devices over hours"},
    {"simulate", R"("$0" simulate --trace 512 --cores 8,32 --cluster substep=0.1,bytes=100000000)",
     "\n32 .* 33.1 s "},
    {"calibrate", R"("$0" calibrate --model softmax --factor 0.1)",
     "substep=[0-9.e-]+,update=[0-9.e-]+,bytes=31400\n"},
    {"verify", R"("$0" verify --model softmax --epochs 1 2>/dev/null)", "same bits"},
    {"replay",
     R"("$0" train --model softmax --epochs 1 --out run --quiet && "$0" replay run --steps 2..30)",
     "steps 2 to 30: 3 digests compared, the same bits"},
    {"whatif",
     R"("$0" train --model softmax --epochs 1 --out run --quiet && "$0" whatif run --without 1)",
     "\nevent 1 "},
    {"doom", R"("$0" train --model softmax --epochs 1 --out run --quiet && "$0" doom run)",
     "this run is\nfine"},
    {"compare",
     R"("$0" compare --model softmax --rule linear,root --seed 1..2 --epochs 1 --tune never --out answer 2>/dev/null)",
     "answer.md, answer.csv"},
    {"diff",
     R"("$0" diff --good "--model softmax" --bad "--model softmax --lr 0.02" --steps 3 || test $? -eq 1)",
     "step 1 differs by its rate"},
    {"report",
     R"("$0" train --model softmax --epochs 1 --out run --quiet && "$0" report run && grep -o 'Trained softmax' report.html)",
     "Trained softmax"},
    {"watch", R"("$0" train --model softmax --epochs 1 --out run --quiet && "$0" watch run)",
     "\naccuracy +[78][0-9]"},
    {"plot",
     R"("$0" train --model softmax --epochs 2 --out run --quiet && "$0" plot run --gnuplot run.gp && cat run.gp)",
     "\nplot .*with lines"},
    {"eval", R"("$0" train --model softmax --epochs 1 --out run --quiet && "$0" eval run)",
     "accuracy +[78][0-9]"},
    {"predict",
     R"("$0" train --model softmax --epochs 1 --out run --quiet && "$0" predict run --out classes.csv && cat classes.csv)",
     "\n0,-?[0-9.]+,"},
    {"metrics",
     R"("$0" train --model softmax --epochs 1 --out run --quiet && "$0" metrics run --kind epoch)",
     "^epoch,steps,.*\n0,48,"},
    {"list", R"("$0" list rules)", "\nadascale\n"},
    {"bench", R"("$0" bench reduce --cores 2 --size 1000 --fused 2>/dev/null)", "\nring "},
    {"doctor", R"("$0" doctor)", "oneTBB"},
    // Python may not be there, nor Hypothesis.
    {"conform", R"("$0" conform --help)", "Usage: rubato conform .MODULE:NAME."},
    {"completion", R"(source <("$0" completion bash) && complete -p rubato)",
     "_rubato_complete rubato"},
};

class EveryCommand : public testing::TestWithParam<Use> {};

TEST_P(EveryCommand, Works) {
  const TempFolder folder;
  const ProgramResult result = test::shell(std::string(GetParam().line), folder.path());
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, ContainsRegex(std::string(GetParam().prints)));
}

INSTANTIATE_TEST_SUITE_P(Of, EveryCommand, testing::ValuesIn(kUses),
                         [](const auto& use) { return std::string(use.param.command); });

TEST(EveryCommand, IsTried) {
  std::vector<std::string> tried;
  for (const Use& use : kUses) tried.emplace_back(use.command);
  std::istringstream help(test::rubato({"--help"}).out);
  std::vector<std::string> commands;
  std::string line;
  while (std::getline(help, line) && line != "Commands:") continue;
  while (std::getline(help, line) && !line.empty()) {
    commands.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  EXPECT_THAT(tried, testing::UnorderedElementsAreArray(commands));
}

}  // namespace
}  // namespace rubato
