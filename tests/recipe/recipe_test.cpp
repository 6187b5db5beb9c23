#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/loop/intervals.hpp>
#include <rubato/loop/libtorch_options.hpp>
#include <rubato/loop/model_options.hpp>

#include "loop/recipe/models.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

TEST(ReplacedOperators, AreReadAsTheyAreWritten) {
  EXPECT_EQ(parse_replaced_operators("all"), ReplacedOperators());
  EXPECT_EQ(parse_replaced_operators("none"), ReplacedOperators::none());
  const ReplacedOperators some = parse_replaced_operators("max-pool,convolution");
  EXPECT_EQ(some, (ReplacedOperators{.batch_norm = false, .attention = false}));
  EXPECT_EQ(to_string(some), "convolution,max-pool");
  EXPECT_EQ(to_string(ReplacedOperators()), "all");
  EXPECT_EQ(to_string(ReplacedOperators::none()), "none");
  EXPECT_EQ(parse_replaced_operators("attention,batch-norm,max-pool,convolution"),
            ReplacedOperators());
  EXPECT_EQ(error_of([] { return parse_replaced_operators("max-pool,batch-nrom"); }),
            "unknown operator 'batch-nrom'; did you mean 'batch-norm'? accepted: all, none, "
            "convolution, max-pool, batch-norm, attention");
  EXPECT_NE(error_of([] { return parse_replaced_operators("max-pool,"); }), "no error");
  EXPECT_EQ(error_of([] { return parse_replaced_operators("all,convolution"); }),
            "'all' is joined with other operators; accepted: all alone, or some of convolution, "
            "max-pool, batch-norm, attention");
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
    return error_of([&] { return parse_initializer(spec); });
  };
  EXPECT_THAT(error("xavir"), HasSubstr("unknown initializer 'xavir'; did you mean 'xavier'?"));
  EXPECT_THAT(error("one:mean=1"), HasSubstr("takes no arguments"));
  EXPECT_THAT(error("uniform:low=1,high=0"), HasSubstr("must be below high"));
  EXPECT_THAT(error("uniform:low=1,high=1"), HasSubstr("must be below high"));
  EXPECT_THAT(error("msra:fan=up"), HasSubstr("msra: fan: unknown value 'up'"));
}

TEST(Models, TakeTheDataThatTheyAreMadeFor) {
  const auto that_take = [](const DataShape& data) {
    std::vector<std::string_view> names;
    for (const ModelEntry& model : models()) {
      if (model.takes(data)) names.push_back(model.name);
    }
    return names;
  };
  EXPECT_THAT(that_take({.width = 16, .vocabulary = 100}), ElementsAre("transformer"));
  EXPECT_THAT(that_take({.height = 8, .width = 8}),
              AllOf(Contains("softmax"), Contains("transformer"), Not(Contains("toy-net"))));
  EXPECT_THAT(that_take({.height = 16, .width = 16}), Contains("toy-net"));
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
    return error_of([&] { return parse_precision(spec); });
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

TEST(DigestInterval, IsReadFromItsText) {
  EXPECT_EQ(parse_digest_interval("every=1"), (DigestInterval{.every = 1}));
  EXPECT_EQ(parse_digest_interval("every=250"), (DigestInterval{.every = 250}));
  EXPECT_EQ(parse_digest_interval("never"), (DigestInterval{.every = 0}));
  for (const char* const other : {"", "10", "every", "every=", "every=0", "every=x", "Never"}) {
    EXPECT_THROW(static_cast<void>(parse_digest_interval(other)), Error) << other;
  }
}

TEST(ResidualOptions, AreRead) {
  const auto read = [](std::string_view spec) {
    return std::get<ResidualOptions>(parse_model(spec).options);
  };
  EXPECT_EQ(read("resnet20").width, 16);
  EXPECT_EQ(read("resnet20:width=32").width, 32);
  EXPECT_THAT(error_of([&] { read("resnet20:width=0"); }), HasSubstr("width: '0' is out of range"));
}

TEST(TransformerOptions, AreRead) {
  const TransformerOptions read = std::get<TransformerOptions>(
      parse_model("transformer:layers=3,heads=2,dim=8,hidden=5,dropout=0.25").options);
  EXPECT_EQ(read.layers, 3);
  EXPECT_EQ(read.heads, 2);
  EXPECT_EQ(read.dim, 8);
  EXPECT_EQ(read.hidden, 5);
  EXPECT_EQ(read.dropout, 0.25);
  const auto error = [](std::string_view spec) {
    return error_of([&] { return parse_model(spec); });
  };
  EXPECT_THAT(error("transformer:dropout=1"), HasSubstr("dropout: "));
  EXPECT_THAT(error("transformer:dim=6"), HasSubstr("accepted: a divisor of dim"));
}

}  // namespace
}  // namespace rubato
