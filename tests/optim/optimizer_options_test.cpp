#include <gmock/gmock.h>

#include "loop/optim/make_optimizer.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

TEST(Optimizers, AreReadWithTheirArguments) {
  const OptimizerOptions defaults{
      .method = SgdOptions{.nesterov = true}, .momentum = 0.5, .weight_decay = 0.01};
  EXPECT_EQ(parse_optimizer("sgd", defaults), defaults);
  const OptimizerOptions lars = parse_optimizer("lars:trust=0.02", defaults);
  EXPECT_EQ(lars.method, OptimizerMethod(LarsOptions{.trust = 0.02}));
  EXPECT_EQ(lars.momentum, 0.5);
  EXPECT_EQ(parse_optimizer("sgd:form=mxnet", {}).method,
            OptimizerMethod(SgdOptions{.momentum_form = MomentumForm::mxnet}));
  EXPECT_EQ(parse_optimizer("lars:form=pytorch", {}).method,
            OptimizerMethod(LarsOptions{.momentum_form = MomentumForm::pytorch}));
  EXPECT_EQ(lars.weight_decay, 0.01);
  for (const std::string name : {"adam", "adamw"}) {
    const OptimizerOptions adam =
        parse_optimizer(name + ":beta1=0.8,beta2=0.9,eps=1e-6,amsgrad=true", {});
    EXPECT_EQ(adam, (OptimizerOptions{.method = AdamOptions{.beta1 = 0.8,
                                                            .beta2 = 0.9,
                                                            .amsgrad = true,
                                                            .epsilon = 1e-6,
                                                            .decoupled = name == "adamw"}}));
  }
  const OptimizerOptions of_minibatches = parse_optimizer("adam:second-moment=minibatch", {});
  EXPECT_EQ(of_minibatches,
            (OptimizerOptions{.method = AdamOptions{.second_moment = SecondMoment::minibatch}}));
  EXPECT_TRUE(facts_of(of_minibatches.method).squares);
  EXPECT_FALSE(facts_of(parse_optimizer("adam", {}).method).squares);
  EXPECT_EQ(parse_optimizer("rmsprop:alpha=0.9,eps=1e-4,centered=true", {}),
            (OptimizerOptions{
                .method = RmspropOptions{.alpha = 0.9, .centered = true, .epsilon = 1e-4}}));
  EXPECT_EQ(parse_optimizer("adagrad:lr-decay=0.1,initial=0.2", {}),
            (OptimizerOptions{.method = AdagradOptions{
                                  .lr_decay = 0.1, .initial_accumulator = 0.2, .epsilon = 1e-10}}));
  EXPECT_EQ(parse_optimizer("muon:momentum=0.8,beta1=0.7,beta2=0.9,eps=1e-6,nesterov=false,steps=3,"
                            "scale=jordan,adamw=*embed*",
                            {}),
            (OptimizerOptions{.method = MuonOptions{.momentum = 0.8,
                                                    .nesterov = false,
                                                    .steps = 3,
                                                    .scale = MuonScale::jordan,
                                                    .adamw = "*embed*",
                                                    .beta1 = 0.7,
                                                    .beta2 = 0.9,
                                                    .epsilon = 1e-6}}));
}

TEST(Optimizers, RejectWhatTheyDoNotTake) {
  const auto error = [](std::string_view spec) {
    return error_of([&] { return parse_optimizer(spec, {}); });
  };
  EXPECT_THAT(error("adan"), HasSubstr("unknown optimizer 'adan'; did you mean 'adam'?"));
  EXPECT_THAT(error("sgd:beta1=0.9"), HasSubstr("unknown argument of sgd 'beta1'"));
  EXPECT_THAT(error("sgd:beta1=0.9"), HasSubstr("accepted: form"));
  EXPECT_EQ(error("sgd:form=mxnt"),
            "sgd: form: unknown value 'mxnt'; did you mean 'mxnet'? accepted: pytorch, mxnet");
  EXPECT_THAT(error("adam:form=mxnet"), HasSubstr("unknown argument of adam 'form'"));
  EXPECT_THAT(error("adam:beta1=1"), HasSubstr("accepted: a number from 0 to below 1"));
}

TEST(Optimizers, AreCheckedAsAWhole) {
  const auto error = [](const OptimizerOptions& options) {
    return error_of([&] { require_valid(options); });
  };
  EXPECT_EQ(error({}), "no error");
  EXPECT_EQ(error({.weight_decay = -1}), "weight decay -1: accepted are values of at least 0");
  EXPECT_EQ(error({.momentum = 1}), "momentum 1: accepted are values from 0 to below 1");
  EXPECT_EQ(error({.method = SgdOptions{.nesterov = true}}),
            "nesterov: there is no momentum; accepted: a momentum above 0");
  EXPECT_THAT(error({.method = LarsOptions{.trust = 0}}), HasSubstr("trust coefficient"));
  EXPECT_THAT(error({.method = AdamOptions{.beta1 = 1}}), HasSubstr("beta1"));
  EXPECT_THAT(error({.method = AdamOptions{.beta2 = -0.1}}), HasSubstr("beta2"));
  EXPECT_THAT(error({.method = AdamOptions{.epsilon = -1}}), HasSubstr("epsilon"));
  EXPECT_THAT(error({.method = RmspropOptions{.alpha = 2}}), HasSubstr("alpha"));
  EXPECT_THAT(error({.method = RmspropOptions{.epsilon = -1}}), HasSubstr("epsilon"));
  EXPECT_THAT(error({.method = AdagradOptions{.lr_decay = -1}}), HasSubstr("decay"));
  EXPECT_THAT(error({.method = AdagradOptions{.initial_accumulator = -1}}),
              HasSubstr("accumulator"));
  EXPECT_THAT(error({.method = AdagradOptions{.epsilon = -1}}), HasSubstr("epsilon"));
  EXPECT_THAT(error_of([] {
                require_valid({}, {{}, {.weight_decay = -1}});
              }),
              HasSubstr("weight decay -1"));
  EXPECT_THAT(error_of([] { require_valid({}, {{.learning_rate_factor = -1}}); }),
              HasSubstr("learning-rate factor -1"));
}

TEST(Optimizers, HaveTheNamesByWhichTheyAreRead) {
  for (const std::string_view name : optimizer_names()) {
    EXPECT_EQ(optimizer_name(parse_optimizer(name, {}).method), name);
  }
}

}  // namespace
}  // namespace rubato
