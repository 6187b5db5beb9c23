// Where is rubato slower than it has to be? For each layer of the networks that bench/pytorch
// compares, this prints the time of the fastest primitive of a library that computes the same,
// called by hand on one thread, beside what rubato takes in training: forward and both gradients,
// for a minibatch of 32 and for four at once. A training has one or four for each core; rubato's
// passes may span cores.
//
// The primitives are oneDNN's convolution, inner product and matmul, in the layouts that they
// prefer and without bringing arrays into them, and OpenBLAS's sgemm (Debian 12 has no libxsmm);
// for layers that only move memory, a copy that reads and writes as much. rubato's times are
// medians over the minibatches of trainings with 8 cores on one thread, in which libtorch reports
// each operator; those of perceptrons, which the Eigen engine computes, are of its kernels, called
// for a layer at a time. Rounds of both follow each other. Layers that take less than a hundredth
// of a minibatch are summed as others. In sums, a layer that rubato computes faster than the
// primitives has rubato's time as its bound.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <rubato/base/machine.hpp>
#include <rubato/libtorch/trainer.hpp>

#include "../models.hpp"
#include "base/core/text/text_table.hpp"
#include "network.hpp"

namespace rubato::bench {

double microseconds_between(Span::Moment begin, Span::Moment end) {
  return std::chrono::duration<double, std::micro>(end - begin).count();
}

void StepTimes::see(const Span& span) {
  if (span.activity == Activity::gather) gathered_ = span.begin;
  if (span.activity == Activity::backward) {
    computed_.push_back(microseconds_between(*gathered_, span.end) /
                        static_cast<double>(span.minibatches));
  }
  if (span.activity != Activity::update) return;
  if (updated_) {
    trained_.push_back(microseconds_between(*updated_, span.end) / static_cast<double>(kCores));
  }
  updated_ = span.end;
}

void Bound::measure() {
  for (std::vector<Timed>& step : steps) {
    for (Timed& primitive : step) primitive.measure();
  }
}

namespace {

const Timed& fastest(const std::vector<Timed>& step) {
  return *std::ranges::min_element(step, {}, &Timed::median);
}

}  // namespace

double Bound::microseconds() const {
  double sum = 0;
  for (const std::vector<Timed>& step : steps) sum += fastest(step).median();
  return sum;
}

std::string Bound::names() const {
  std::string names;
  for (const std::vector<Timed>& step : steps) {
    const std::string& name = fastest(step).name;
    if (names.find(name) != std::string::npos) continue;
    names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

namespace {

using PerMinibatch = std::array<double, kAtOnce.size()>;

// The cells of a line of the table: for each of kAtOnce the bound, rubato's time, and how many
// times as long that is.
void add_line(TextTable& table, const std::string& layer, const std::string& pass,
              const PerMinibatch& bounds, const PerMinibatch& rubato, const std::string& names) {
  std::vector<std::string> cells{layer, pass};
  for (std::size_t k = 0; k < kAtOnce.size(); ++k) {
    cells.push_back(bounds[k] > 0 ? fmt::format("{:.1f}", bounds[k]) : "");
    cells.push_back(fmt::format("{:.1f}", rubato[k]));
    cells.push_back(bounds[k] > 0 ? fmt::format("{:.2f}x", rubato[k] / bounds[k]) : "");
  }
  cells.push_back(names);
  table.add(std::move(cells));
}

void print(std::string_view name, const Network& network) {
  constexpr double kSmallest = 0.01;
  TextTable table({Column::left, Column::left, Column::right, Column::right, Column::right,
                   Column::right, Column::right, Column::right, Column::left});
  table.add({std::string(name), "pass", "bound", "rubato", "", "bound of 4", "rubato", "",
             "the fastest primitives"});
  const auto per_minibatch = [](const auto& microseconds) {
    PerMinibatch all{};
    for (std::size_t k = 0; k < all.size(); ++k) {
      all[k] = microseconds(k) / static_cast<double>(kAtOnce[k]);
    }
    return all;
  };
  PerMinibatch bound_of_all{};
  PerMinibatch all{};
  PerMinibatch bound_of_others{};
  PerMinibatch others{};
  const auto add_to = [](PerMinibatch& sum, const PerMinibatch& part) {
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += part[k];
  };
  for (const Row& row : network.rows) {
    const PerMinibatch bounds = per_minibatch([&](std::size_t k) {
      return row.bounds[k].microseconds() * static_cast<double>(row.count);
    });
    const PerMinibatch rubato = per_minibatch([&](std::size_t k) { return row.rubato[k]; });
    PerMinibatch faster{};
    std::ranges::transform(bounds, rubato, faster.begin(),
                           [](double a, double b) { return std::min(a, b); });
    add_to(bound_of_all, faster);
    add_to(all, rubato);
    if (rubato.front() < kSmallest * network.computed.front()) {
      add_to(bound_of_others, faster);
      add_to(others, rubato);
      continue;
    }
    std::string names = row.bounds.front().names();
    if (const std::string of_four = row.bounds.back().names(); of_four != names) {
      names += "; " + of_four;
    }
    add_line(table, fmt::format("{} ({})", row.layer, row.count), row.pass, bounds, rubato, names);
  }
  add_line(table, "others", "", bound_of_others, others, "");
  add_line(table, "all layers", "", bound_of_all, all, "");
  add_line(table, "gather to backward", "", bound_of_all,
           per_minibatch([&](std::size_t k) { return network.computed[k]; }), "");
  add_line(table, "training", "", bound_of_all,
           per_minibatch([&](std::size_t k) { return network.trained[k]; }), "");
  fmt::print("{}\n", table.text({}));
  std::fflush(stdout);
}

}  // namespace
}  // namespace rubato::bench

int main(int argc, char** argv) {
  try {
    rubato::use_right_kernels(argv);
    rubato::use_one_intra_op_thread();
    std::vector<std::string> networks;
    for (const std::string_view name : rubato::bench::model_names()) networks.emplace_back(name);
    int rounds = 9;
    CLI::App app{
        "Prints microseconds for a minibatch of 32 in each layer of the networks: of the fastest "
        "primitive, and of rubato in training."};
    app.add_option("--networks", networks)->check(CLI::IsMember(networks))->capture_default_str();
    app.add_option("--rounds", rounds)->check(CLI::PositiveNumber)->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    for (const std::string& name : networks) {
      // `rubato train` computes perceptrons by the Eigen engine.
      rubato::bench::print(name, name == "wide-mlp"
                                     ? rubato::bench::measure_perceptron(name, rounds)
                                     : rubato::bench::measure_torch(name, rounds));
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_bound: {}\n", error.what());
    return 2;
  }
  return 0;
}
