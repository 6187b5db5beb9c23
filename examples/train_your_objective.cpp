// An objective of your own, a class without libtorch: parameters of two tensors, an evaluator for
// each thread, and a test set. It learns how 300 users rate 200 films, from four numbers for each
// user and each film (matrix factorisation), on a changing number of cores.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rubato/loop/objective.hpp>
#include <rubato/loop/trainer.hpp>

namespace {

constexpr std::int64_t kUsers = 300;
constexpr std::int64_t kFilms = 200;
constexpr std::int64_t kRank = 4;

struct Rating {
  std::int64_t user = 0;
  std::int64_t film = 0;
  double value = 0;
};

// Returns ratings that follow hidden tastes of users and films.
std::vector<Rating> ratings(int count, std::mt19937& random, std::span<const double> taste) {
  std::vector<Rating> all;
  for (int i = 0; i < count; ++i) {
    Rating rating{.user = static_cast<std::int64_t>(random() % kUsers),
                  .film = static_cast<std::int64_t>(random() % kFilms)};
    const auto user = static_cast<std::size_t>(rating.user);
    const auto film = static_cast<std::size_t>(kUsers + rating.film);
    rating.value = std::sin(taste[user] + taste[film]) + 0.1 * std::normal_distribution()(random);
    all.push_back(rating);
  }
  return all;
}

// `values` has a row for each user, followed by one for each film.
template <class T>
std::span<T> row_of_user(std::span<T> values, const Rating& rating) {
  return values.subspan(static_cast<std::size_t>(rating.user * kRank), kRank);
}
template <class T>
std::span<T> row_of_film(std::span<T> values, const Rating& rating) {
  return values.subspan(static_cast<std::size_t>((kUsers + rating.film) * kRank), kRank);
}

double error_of(std::span<const double> parameters, const Rating& rating) {
  const auto user = row_of_user(parameters, rating);
  const auto film = row_of_film(parameters, rating);
  double sum = -rating.value;
  for (std::size_t k = 0; k < kRank; ++k) sum += user[k] * film[k];
  return sum;
}

class RatingsEvaluator final : public rubato::Evaluator<double> {
 public:
  RatingsEvaluator(std::span<const Rating> train, std::span<const double> parameters)
      : train_(train), parameters_(parameters) {}

  // Returns half the mean squared error of the minibatch. The gradient is 0 when this is called.
  double evaluate(const rubato::Minibatch& minibatch, const rubato::Leaf<double>& leaf,
                  rubato::EvaluatorProgress& progress) override {
    progress.enter(rubato::Phase::loss);
    const auto count = static_cast<double>(minibatch.samples.size());
    double loss = 0;
    for (const std::int64_t sample : minibatch.samples) {
      const Rating& rating = train_[static_cast<std::size_t>(sample)];
      const double error = error_of(parameters_, rating);
      loss += error * error / 2 / count;
      const auto user = row_of_user(parameters_, rating);
      const auto film = row_of_film(parameters_, rating);
      const auto user_gradient = row_of_user(leaf.gradient, rating);
      const auto film_gradient = row_of_film(leaf.gradient, rating);
      for (std::size_t k = 0; k < kRank; ++k) {
        user_gradient[k] += error * film[k] / count;
        film_gradient[k] += error * user[k] / count;
      }
    }
    return loss;
  }

 private:
  std::span<const Rating> train_;
  std::span<const double> parameters_;
};

class Factorisation final : public rubato::ObjectiveOf<double> {
 public:
  Factorisation(std::vector<Rating> train, std::vector<Rating> test, std::mt19937& random)
      : train_(std::move(train)), test_(std::move(test)), values_((kUsers + kFilms) * kRank) {
    for (double& value : values_) value = 0.3 * std::normal_distribution()(random);
    arrays_ = {{.name = "users",
                .type = rubato::ElementType::f64,
                .shape = {kUsers, kRank},
                .data = values_.data()},
               {.name = "films",
                .type = rubato::ElementType::f64,
                .shape = {kFilms, kRank},
                .data = values_.data() + kUsers * kRank}};
    trained_ = {{.array = arrays_[0], .end = kUsers * kRank},
                {.array = arrays_[1], .end = (kUsers + kFilms) * kRank}};
  }

  std::int64_t samples() const override { return static_cast<std::int64_t>(train_.size()); }
  const std::vector<rubato::TrainedArray>& trained() const override { return trained_; }
  const std::vector<rubato::NamedArray>& parameters() const override { return arrays_; }
  std::span<double> flat_parameters() override { return values_; }
  std::string fingerprint() const override { return "ratings of seed 1"; }

  bool has_test() const override { return true; }
  rubato::Evaluation test(rubato::Workers& /*workers*/,
                          const rubato::EvaluationOptions& /*options*/,
                          std::string_view /*when*/) override {
    double sum = 0;
    for (const Rating& rating : test_) {
      const double error = error_of(values_, rating);
      sum += error * error / 2;
    }
    return {.samples = static_cast<std::int64_t>(test_.size()),
            .loss = sum / static_cast<double>(test_.size())};
  }

  std::unique_ptr<rubato::Evaluator<double>> make_evaluator() override {
    return std::make_unique<RatingsEvaluator>(train_, values_);
  }

 private:
  std::vector<Rating> train_;
  std::vector<Rating> test_;
  // The memory of the arrays.
  std::vector<double> values_;
  std::vector<rubato::NamedArray> arrays_;
  std::vector<rubato::TrainedArray> trained_;
};

}  // namespace

int main() {
  std::mt19937 random(1);
  std::vector<double> taste(kUsers + kFilms);
  for (double& value : taste) value = std::uniform_real_distribution(0.0, 6.283)(random);
  auto train = ratings(16'384, random, taste);
  auto test = ratings(2'048, random, taste);
  auto objective = std::make_unique<Factorisation>(std::move(train), std::move(test), random);

  // Eight cores, then three, then sixteen, each with 16 samples at a time.
  const rubato::Trace trace({{128, 8}, {48, 3}, {256, 16}}, rubato::TraceEnd::cycle, "preemption");
  rubato::TrainOptions options{.epochs = 30, .minibatch_size = 16, .learning_rate = 2};
  options.rule = "root";
  options.optimizer.momentum = 0.9;
  rubato::Trainer trainer(std::move(objective), trace, options);
  const rubato::TrainResult result = trainer.fit();
  // The error cannot fall below 0.1, which is the noise.
  std::printf("%lld steps, off by %.2f on ratings that it has not seen\n",
              static_cast<long long>(result.steps), std::sqrt(2 * result.final_test->loss));
}
