// Compares the functions of exact:: with MPFR, which rounds correctly, too: bits, and nanoseconds
// of this thread. bench_mpfr_functions [COUNT]

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <mpfr.h>

#include "base/core/portable_math.hpp"

namespace {

using Real = double (*)(double);
using OfMpfr = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);

// A number with the 53 bits of a double, and its range.
class Number {
 public:
  Number() { mpfr_init2(value_, 53); }
  ~Number() { mpfr_clear(value_); }
  Number(const Number&) = delete;
  Number& operator=(const Number&) = delete;

  mpfr_ptr get() { return value_; }

 private:
  mpfr_t value_{};
};

double rounded(OfMpfr function, double x) {
  static Number argument;
  static Number result;
  mpfr_set_d(argument.get(), x, MPFR_RNDN);
  const int ternary = function(result.get(), argument.get(), MPFR_RNDN);
  mpfr_subnormalize(result.get(), ternary, MPFR_RNDN);
  return mpfr_get_d(result.get(), MPFR_RNDN);
}

int to_three_quarters(mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t rounding) {
  static Number power;
  mpfr_set_d(power.get(), 0.75, rounding);
  return mpfr_pow(result, x, power.get(), rounding);
}

template <class Function>
double nanoseconds_of_each(std::size_t count, const Function& function) {
  const std::clock_t begin = std::clock();
  for (std::size_t i = 0; i < count; ++i) function(i);
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC * 1e9 /
         static_cast<double>(count);
}

void compare(std::string_view name, const std::vector<double>& at, Real own, OfMpfr other) {
  std::vector<double> owns(at.size());
  std::vector<double> others(at.size());
  const double own_time =
      nanoseconds_of_each(at.size(), [&](std::size_t i) { owns[i] = own(at[i]); });
  const double other_time =
      nanoseconds_of_each(at.size(), [&](std::size_t i) { others[i] = rounded(other, at[i]); });
  std::size_t differ = 0;
  for (std::size_t i = 0; i < at.size(); ++i) differ += owns[i] == others[i] ? 0 : 1;
  fmt::print("{:<12} {} of {} differ; exact {:.0f} ns, MPFR {:.0f} ns\n", name, differ, at.size(),
             own_time, other_time);
}

}  // namespace

int main(int argc, char** argv) {
  namespace exact = rubato::exact;
  const auto count = static_cast<std::size_t>(argc > 1 ? std::atoll(argv[1]) : 60'000);
  mpfr_set_emin(-1073);
  mpfr_set_emax(1024);
  std::mt19937_64 random(1);
  const auto between = [&](double low, double high, Real function) {
    std::uniform_real_distribution<double> draw(low, high);
    std::vector<double> all(count);
    for (double& x : all) x = function(draw(random));
    return all;
  };
  const Real as_it_is = [](double x) { return x; };
  compare("exp", between(-745, 710, as_it_is), exact::exp, mpfr_exp);
  compare("log", between(-700, 700, std::exp), exact::log, mpfr_log);
  compare("log1p", between(-40, 40, std::exp), exact::log1p, mpfr_log1p);
  compare(
      "pow", between(-3, 3, std::exp), [](double x) { return exact::pow(x, 0.75); },
      to_three_quarters);
  compare("cos_of_turns", between(-8, 8, as_it_is), exact::cos_of_turns,
          [](mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t rounding) {
            return mpfr_cosu(result, x, 1, rounding);
          });
}
