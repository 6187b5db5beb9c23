#include <string>

#include <gmock/gmock.h>

#include "app/run_program.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

test::ProgramResult calibrate(const test::Words& arguments) {
  const test::TempFolder folder;
  return test::rubato("calibrate" + arguments, folder.path());
}

// "substep=3.9e-05,update=4e-06,bytes=31400".
const char* const kCluster = "substep=[0-9.e+-]+,update=[0-9.e+-]+,bytes=[0-9]+\n";

TEST(CalibrateCommand, PrintsWhatClusterTakes) {
  const test::ProgramResult result = calibrate("--model=softmax");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, MatchesRegex(kCluster));
  EXPECT_THAT(result.out, HasSubstr("bytes=31400\n"));
  EXPECT_THAT(result.err, StartsWith("softmax, minibatch 32, one thread: medians of "));
  const std::string cluster = result.out.substr(0, result.out.size() - 1);
  EXPECT_EQ(test::rubato("simulate --trace=512 --cluster " + cluster).code, 0);
}

TEST(CalibrateCommand, MultipliesBoth) {
  const auto substep = [](const std::string& factor) {
    const test::ProgramResult result = calibrate("--model=quadratic:dim=10 --factor " + factor);
    EXPECT_THAT(result.out, MatchesRegex(kCluster));
    EXPECT_THAT(result.err, HasSubstr("; times 1e"));
    return std::stod(result.out.substr(result.out.find('=') + 1));
  };
  // By what no machine is disturbed.
  EXPECT_GT(substep("1e+30") / substep("1e+20"), 1e8);
}

TEST(CalibrateCommand, RefusesWhatItDoesNotDependOn) {
  for (const char* argument : {"--epochs=3", "--trace=64", "--clock=virtual", "--threads=1",
                               "--keep=2", "--schedule=constant", "--out=x"}) {
    const test::ProgramResult result = calibrate(argument);
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.err, HasSubstr("which do not depend on it; accepted: with `rubato train`"))
        << argument;
  }
  EXPECT_THAT(calibrate("--factor=0").err, HasSubstr("accepted: a number greater than 0"));
}

}  // namespace
}  // namespace rubato
