#include <gmock/gmock.h>

#include <rubato/loop/model_options.hpp>
#include <rubato/loop/optimizer.hpp>
#include <rubato/loop/training_options.hpp>

#include "support/error_of.hpp"

namespace rubato {
namespace {

using test::error_of;
using testing::HasSubstr;

TEST(ReplacedOperators, AreReadAsTheyAreWritten) {
  EXPECT_EQ(parse_replaced_operators("all"), ReplacedOperators());
  EXPECT_EQ(parse_replaced_operators("none"), ReplacedOperators::none());
  const ReplacedOperators some = parse_replaced_operators("max-pool,convolution");
  EXPECT_EQ(some, (ReplacedOperators{.convolution = true, .max_pool = true, .batch_norm = false}));
  EXPECT_EQ(to_string(some), "convolution,max-pool");
  EXPECT_EQ(to_string(ReplacedOperators()), "all");
  EXPECT_EQ(to_string(ReplacedOperators::none()), "none");
  EXPECT_EQ(parse_replaced_operators("batch-norm,max-pool,convolution"), ReplacedOperators());
  EXPECT_EQ(error_of([] { static_cast<void>(parse_replaced_operators("max-pool,batch-nrom")); }),
            "unknown operator 'batch-nrom'; did you mean 'batch-norm'? accepted: all, none, "
            "convolution, max-pool, batch-norm");
  EXPECT_NE(error_of([] { static_cast<void>(parse_replaced_operators("max-pool,")); }), "no error");
}

TEST(Optimizers, AreReadWithTheirArguments) {
  const OptimizerOptions defaults{.momentum = 0.5, .weight_decay = 0.01, .nesterov = true};
  EXPECT_EQ(parse_optimizer("sgd", defaults), defaults);
  const OptimizerOptions lars = parse_optimizer("lars:trust=0.02", defaults);
  EXPECT_EQ(lars.kind, OptimizerKind::lars);
  EXPECT_EQ(lars.trust, 0.02);
  EXPECT_EQ(lars.momentum, 0.5);
  EXPECT_EQ(lars.momentum_form, std::nullopt);
  EXPECT_EQ(parse_optimizer("sgd:form=mxnet", {}).momentum_form, MomentumForm::mxnet);
  EXPECT_EQ(parse_optimizer("lars:form=pytorch", {}).momentum_form, MomentumForm::pytorch);
  EXPECT_EQ(lars.weight_decay, 0.01);
  for (const auto* name : {"adam", "adamw"}) {
    const OptimizerOptions adam =
        parse_optimizer(std::string(name) + ":beta1=0.8,beta2=0.9,eps=1e-6,amsgrad=true", {});
    EXPECT_EQ(
        adam,
        (OptimizerOptions{
            .kind = adam.kind, .beta1 = 0.8, .beta2 = 0.9, .amsgrad = true, .epsilon = 1e-6}));
  }
  EXPECT_EQ(parse_optimizer("rmsprop:alpha=0.9,eps=1e-4,centered=true", {}),
            (OptimizerOptions{
                .kind = OptimizerKind::rmsprop, .alpha = 0.9, .centered = true, .epsilon = 1e-4}));
  EXPECT_EQ(parse_optimizer("adagrad:lr-decay=0.1,initial=0.2", {}),
            (OptimizerOptions{.kind = OptimizerKind::adagrad,
                              .lr_decay = 0.1,
                              .initial_accumulator = 0.2,
                              .epsilon = 1e-10}));
}

TEST(Optimizers, RejectWhatTheyDoNotTake) {
  const auto error = [](std::string_view spec) {
    return error_of([&] { static_cast<void>(parse_optimizer(spec, {})); });
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
  EXPECT_THAT(error({.weight_decay = -1}), HasSubstr("weight decay -1: accepted"));
  EXPECT_THAT(error({.momentum = 1}), HasSubstr("momentum 1: accepted"));
  EXPECT_THAT(error({.nesterov = true}), HasSubstr("needs a momentum"));
  EXPECT_THAT(error({.kind = OptimizerKind::lars, .momentum = 0.5, .nesterov = true}),
              HasSubstr("of sgd, not of lars"));
  EXPECT_THAT(error({.kind = OptimizerKind::rmsprop, .momentum_form = MomentumForm::mxnet}),
              HasSubstr("of sgd and lars, not of rmsprop"));
  EXPECT_THAT(error({.trust = 0}), HasSubstr("trust coefficient"));
  EXPECT_THAT(error({.beta1 = 1}), HasSubstr("beta1"));
  EXPECT_THAT(error({.beta2 = -0.1}), HasSubstr("beta2"));
  EXPECT_THAT(error({.alpha = 2}), HasSubstr("alpha"));
  EXPECT_THAT(error({.lr_decay = -1}), HasSubstr("decay"));
  EXPECT_THAT(error({.initial_accumulator = -1}), HasSubstr("accumulator"));
  EXPECT_THAT(error({.epsilon = -1}), HasSubstr("epsilon"));
}

TEST(Initializers, AreReadWithTheirArguments) {
  EXPECT_EQ(parse_initializer("default"), InitializerOptions{});
  EXPECT_EQ(parse_initializer("xavier:distribution=normal,gain=2"),
            (InitializerOptions{.kind = InitializerKind::xavier, .normal = true, .gain = 2}));
  EXPECT_EQ(
      parse_initializer("msra:slope=0.25,fan=out"),
      (InitializerOptions{.kind = InitializerKind::msra, .slope = 0.25, .fan = FanMode::out}));
  EXPECT_EQ(parse_initializer("orthogonal:gain=3"),
            (InitializerOptions{.kind = InitializerKind::orthogonal, .gain = 3}));
  EXPECT_EQ(parse_initializer("normal:mean=1,deviation=2"),
            (InitializerOptions{.kind = InitializerKind::normal, .mean = 1, .deviation = 2}));
  EXPECT_EQ(parse_initializer("uniform:low=-1,high=2"),
            (InitializerOptions{.kind = InitializerKind::uniform, .low = -1, .high = 2}));
  EXPECT_EQ(parse_initializer("one").kind, InitializerKind::one);
  EXPECT_EQ(parse_initializer("zero").kind, InitializerKind::zero);
}

TEST(Initializers, RejectWhatTheyDoNotTake) {
  const auto error = [](std::string_view spec) {
    return error_of([&] { static_cast<void>(parse_initializer(spec)); });
  };
  EXPECT_THAT(error("xavir"), HasSubstr("unknown initializer 'xavir'; did you mean 'xavier'?"));
  EXPECT_THAT(error("one:mean=1"), HasSubstr("takes no arguments"));
  EXPECT_THAT(error("uniform:low=1,high=0"), HasSubstr("must be below high"));
  EXPECT_THAT(error("uniform:low=1,high=1"), HasSubstr("must be below high"));
  EXPECT_THAT(error("msra:fan=up"), HasSubstr("msra: fan: unknown value 'up'"));
}

TEST(Precision, IsReadWithItsArguments) {
  EXPECT_EQ(parse_precision("full"), PrecisionOptions{});
  EXPECT_EQ(parse_precision("bf16").precision, Precision::bf16);
  EXPECT_EQ(parse_precision("fp16"), PrecisionOptions{.precision = Precision::fp16});
  EXPECT_EQ(
      parse_precision("fp16:scale=1024,growth=4,backoff=0.25,interval=10,smallest=2"),
      (PrecisionOptions{
          .precision = Precision::fp16,
          .loss_scale = {
              .initial = 1024, .growth = 4, .backoff = 0.25, .interval = 10, .smallest = 2}}));
  const auto error = [](std::string_view spec) {
    return error_of([&] { static_cast<void>(parse_precision(spec)); });
  };
  EXPECT_THAT(error("fp61"), HasSubstr("did you mean 'fp16'? accepted: full, bf16, fp16"));
  EXPECT_THAT(error("full:scale=2"), HasSubstr("takes no arguments"));
  EXPECT_THAT(error("fp16:backoff=1"), HasSubstr("accepted: a number between 0 and 1"));
  EXPECT_THAT(error("fp16:scale=1,smallest=2"), HasSubstr("smallest scale 2"));
}

TEST(CheckpointInterval, HasACountAndAUnit) {
  using Unit = CheckpointInterval::Unit;
  const auto interval = [](std::int64_t count, Unit unit) {
    return std::optional(CheckpointInterval{.count = count, .unit = unit});
  };
  EXPECT_EQ(parse_checkpoint_interval("100steps"), interval(100, Unit::steps));
  EXPECT_EQ(parse_checkpoint_interval("1 epoch"), interval(1, Unit::epochs));
  EXPECT_EQ(parse_checkpoint_interval("60 seconds"), interval(60, Unit::seconds));
  EXPECT_EQ(parse_checkpoint_interval("1second"), interval(1, Unit::seconds));
  EXPECT_EQ(parse_checkpoint_interval("never"), std::nullopt);
  for (const std::string bad : {"", "5", "steps", "0steps", "-1steps", "1.5steps", "5 step s",
                                "5minutes", "5stepss", "99999999999999999999steps"}) {
    EXPECT_THROW(static_cast<void>(parse_checkpoint_interval(bad)), Error) << bad;
  }
}

TEST(ResidualOptions, AreRead) {
  EXPECT_EQ(parse_residual("resnet20").width, 16);
  EXPECT_EQ(parse_residual("resnet20:width=32").width, 32);
  const auto error = [](std::string_view spec) {
    return error_of([&] { static_cast<void>(parse_residual(spec)); });
  };
  EXPECT_THAT(error("resnet20:width=0"), HasSubstr("width: '0' is out of range"));
  EXPECT_EQ(error("resnet50"),
            "'resnet50' is no residual network; accepted: resnet20, with the argument width");
  // 0.27 million parameters (He et al. 2016, table 6), with shortcuts of option B.
  EXPECT_EQ(residual_parameters({}, 3, 10), 272'474);
}

TEST(TransformerOptions, AreRead) {
  const TransformerOptions read =
      parse_transformer("transformer:layers=3,heads=2,dim=8,hidden=5,dropout=0.25");
  EXPECT_EQ(read.layers, 3);
  EXPECT_EQ(read.heads, 2);
  EXPECT_EQ(read.dim, 8);
  EXPECT_EQ(read.hidden, 5);
  EXPECT_EQ(read.dropout, 0.25);
  const auto error = [](std::string_view spec) {
    return error_of([&] { static_cast<void>(parse_transformer(spec)); });
  };
  EXPECT_THAT(error("transformer:dropout=1"), HasSubstr("dropout: "));
  EXPECT_THAT(error("transformer:dim=6"), HasSubstr("accepted: a divisor of dim"));
  EXPECT_THAT(error("encoder"), HasSubstr("'encoder' is no transformer"));
}

}  // namespace
}  // namespace rubato
