#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <rubato/loop/reducer.hpp>
#include <rubato/testing.hpp>

namespace rubato::test {

Trace trace_of(const std::vector<std::int64_t>& batch_sizes, TraceEnd end) {
  std::vector<TraceStep> steps;
  steps.reserve(batch_sizes.size());
  for (const std::int64_t batch_size : batch_sizes) steps.push_back({batch_size, std::nullopt});
  return Trace(std::move(steps), end, "test trace");
}

void Recorder::on_epoch_begin(Training& training, const EpochStart& epoch) {
  static_cast<void>(training);
  begun.push_back(epoch);
}
void Recorder::on_step(Training& training, const StepRecord& step) {
  steps.push_back(step);
  if (on_each_) on_each_(training, step);
}
void Recorder::on_epoch(Training& training, const EpochRecord& epoch) {
  static_cast<void>(training);
  epochs.push_back(epoch);
}

namespace {

std::string element_text(const NamedArray& array, std::size_t i) {
  switch (array.type) {
    case ElementType::f64:
      return fmt::format("{}", array.values<double>()[i]);
    case ElementType::f32:
      return fmt::format("{}", array.values<float>()[i]);
    case ElementType::i64:
      return fmt::format("{}", array.values<std::int64_t>()[i]);
    default:
      return std::string(name_of(array.type));
  }
}

std::optional<std::string> difference_of_arrays(const std::vector<NamedArray>& one,
                                                const std::vector<NamedArray>& other) {
  if (one.size() != other.size()) {
    return fmt::format("{} arrays and {}", one.size(), other.size());
  }
  for (std::size_t a = 0; a < one.size(); ++a) {
    if (one[a].name != other[a].name || one[a].type != other[a].type ||
        one[a].shape != other[a].shape) {
      return fmt::format("'{}' and '{}' are not alike", one[a].name, other[a].name);
    }
    const std::size_t bytes = size_of(one[a].type);
    for (std::size_t i = 0; i < one[a].size(); ++i) {
      const std::byte* const left = one[a].bytes().data() + i * bytes;
      const std::byte* const right = other[a].bytes().data() + i * bytes;
      if (std::memcmp(left, right, bytes) == 0) continue;
      return fmt::format("{}[{}] is {} and {}", one[a].name, i, element_text(one[a], i),
                         element_text(other[a], i));
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> difference_of(const Trainer& one, const Trainer& other) {
  const auto parameters = difference_of_arrays(one.parameters(), other.parameters());
  return parameters ? parameters : difference_of_arrays(one.buffers(), other.buffers());
}

std::vector<Way> all_ways_to_train(std::int64_t steps) {
  std::vector<Way> ways{{.what = "one thread, one core"}};
  for (const int threads : {1, 2, 4}) {
    for (const std::int64_t cores : {1, 3, 8, 64}) {
      for (const std::string_view reduce : reducer_names()) {
        if (!is_reproducible(reduce)) continue;
        for (const Assignment assignment : {Assignment::contiguous, Assignment::strided}) {
          ways.push_back({.what = "otherwise shared out",
                          .cores = cores,
                          .threads = threads,
                          .reduce = std::string(reduce),
                          .assignment = assignment});
        }
      }
    }
  }
  for (const int threads : {1, 4}) {
    ways.push_back({.what = "the reducer asked for", .cores = 5, .threads = threads, .reduce = ""});
  }
  for (const double rate : {0.1, 0.5}) {
    ways.push_back({.what = "cores that die", .cores = 5, .threads = 2, .fault_rate = rate});
  }
  for (const int evaluators : {2, 3, 5}) {
    ways.push_back({.what = "evaluators in turns",
                    .cores = 3,
                    .threads = evaluators,
                    .assignment = Assignment::strided,
                    .dealing = Dealing::in_turns});
  }
  for (std::int64_t step = 1; step < steps; ++step) {
    ways.push_back({.what = "a resume", .cores = 3, .threads = 2, .resume_after = step});
  }
  return ways;
}

std::optional<std::string> difference_in_bits(const MakeTrainer& make, std::int64_t steps) {
  Verification verification(make, steps);
  for (const Way& way : all_ways_to_train(steps)) {
    const WayOutcome outcome = verification.train(way);
    if (!outcome.difference) continue;
    return fmt::format("{} ({} threads, {} cores, reducer {}, {}{}): {}", way.what, way.threads,
                       way.cores, way.reduce, choice_name(kAssignments, way.assignment),
                       way.resume_after > 0 ? fmt::format(", after step {}", way.resume_after) : "",
                       *outcome.difference);
  }
  return std::nullopt;
}

}  // namespace rubato::test
