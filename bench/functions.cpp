// Compares functions whose bits are the same on every CPU with those of the C library: nanoseconds,
// and `wrong`, the number of results for 100,000 arguments that are not the nearest number
// (docs/adr/0062). The nearest number is taken from the C library's long double, unless that is too
// close to the middle of two numbers to tell.
//
//   bench_functions

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/core/portable_math.hpp"

namespace {

namespace exact = rubato::exact;
namespace quick = rubato::quick;

constexpr std::size_t kArguments = 100'000;

std::vector<double> arguments(double from, double to) {
  std::mt19937_64 generator(1);
  std::uniform_real_distribution<double> uniform(from, to);
  std::vector<double> values(kArguments);
  for (double& value : values) value = uniform(generator);
  return values;
}

// Rounds the value to double; empty if it is so close to the middle of two numbers that its own
// error decides.
std::optional<double> nearest(long double value) {
  const auto rounded = static_cast<double>(value);
  const auto above =
      static_cast<long double>(std::nextafter(rounded, value > rounded ? 1e308 : -1e308));
  const long double middle = (rounded + above) / 2;
  const long double unit = std::fabs(above - static_cast<long double>(rounded));
  if (std::fabs(value - middle) < unit / 256) return std::nullopt;
  return rounded;
}

template <class Function, class Reference>
void add(const std::string& name, double from, double to, Function function, Reference reference) {
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    const std::vector<double> values = arguments(from, to);
    std::size_t next = 0;
    for ([[maybe_unused]] auto _ : state) {
      benchmark::DoNotOptimize(function(values[next]));
      next = next + 1 < values.size() ? next + 1 : 0;
    }
    std::int64_t wrong = 0;
    for (const double value : values) {
      const auto expected = nearest(reference(static_cast<long double>(value)));
      if (expected && *expected != function(value)) ++wrong;
    }
    state.counters["wrong"] = static_cast<double>(wrong);
  });
}

}  // namespace

int main(int argc, char** argv) {
  constexpr double kPower = 1.1875;
  const auto exp = [](long double x) { return std::exp(x); };
  const auto log = [](long double x) { return std::log(x); };
  const auto log1p = [](long double x) { return std::log1p(x); };
  const auto pow = [](long double x) { return std::pow(x, static_cast<long double>(kPower)); };
  const auto cos = [](long double x) { return std::cos(2 * std::numbers::pi_v<long double> * x); };
  add("exp/exact", -30, 30, exact::exp, exp);
  add(
      "exp/C", -30, 30, [](double x) { return std::exp(x); }, exp);
  add("log/exact", 0, 1, exact::log, log);
  add("log/quick", 0, 1, quick::log, log);
  add(
      "log/C", 0, 1, [](double x) { return std::log(x); }, log);
  add("log1p/exact", -0.5, 0.5, exact::log1p, log1p);
  add(
      "log1p/C", -0.5, 0.5, [](double x) { return std::log1p(x); }, log1p);
  add(
      "pow/exact", 0, 100, [](double x) { return exact::pow(x, kPower); }, pow);
  add(
      "pow/C", 0, 100, [](double x) { return std::pow(x, kPower); }, pow);
  add("cos/exact", 0, 0.2, exact::cos_of_turns, cos);
  add(
      "cos/quick", 0, 0.2, [](double x) { return quick::direction(x).cosine; }, cos);
  add(
      "cos/C", 0, 0.2, [](double x) { return std::cos(2 * std::numbers::pi * x); }, cos);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
