#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <mutex>

#include <rubato/base/error.hpp>
#include <rubato/testing.hpp>

#include "base/core/throw_error.hpp"

namespace rubato::test {

namespace {

// The mailboxes of the hosts.
class Exchange {
 public:
  explicit Exchange(std::size_t hosts)
      : given_(hosts), taken_(hosts), mail_(hosts, std::vector<Message>(hosts)) {}

  void give(std::size_t from, std::span<const std::span<const std::byte>> out) {
    std::unique_lock lock(mutex_);
    // Waits until nobody reads this host's previous message any more.
    wait(lock, from, taken_, given_[from]);
    for (std::size_t to = 0; to < mail_.size(); ++to) {
      if (to != from) mail_[from][to].assign(out[to].begin(), out[to].end());
    }
    ++given_[from];
    changed_.notify_all();
  }
  void take(std::size_t to, std::span<const std::span<std::byte>> in) {
    std::unique_lock lock(mutex_);
    wait(lock, to, given_, taken_[to] + 1);
    for (std::size_t from = 0; from < mail_.size(); ++from) {
      if (from == to) continue;
      const Message& message = mail_[from][to];
      if (message.size() != in[from].size()) {
        throw_error("host {} gives {} bytes to host {}, which waits for {}; accepted: as many",
                    from, message.size(), to, in[from].size());
      }
      std::ranges::copy(message, in[from].begin());
    }
    ++taken_[to];
    changed_.notify_all();
  }
  void leave(std::size_t host) {
    const std::lock_guard lock(mutex_);
    gone_ = host;
    changed_.notify_all();
  }

 private:
  using Message = std::vector<std::byte>;

  // Waits until all hosts have done it that often. Throws Error once that is impossible.
  void wait(std::unique_lock<std::mutex>& lock, std::size_t host,
            const std::vector<std::int64_t>& done, std::int64_t often) {
    const auto all = [&] {
      return std::ranges::all_of(done, [often](std::int64_t count) { return count >= often; });
    };
    changed_.wait(lock, [&] { return all() || gone_; });
    if (!all()) throw_error("host {} waits for host {}, which has gone", host, *gone_);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  // Counts, by host, how often it has given and taken.
  std::vector<std::int64_t> given_;
  std::vector<std::int64_t> taken_;
  // The messages, by sender and recipient.
  std::vector<std::vector<Message>> mail_;
  std::optional<std::size_t> gone_;
};

class EmulatedHost final : public Hosts {
 public:
  EmulatedHost(std::shared_ptr<Exchange> exchange, std::vector<double> weights, std::size_t rank)
      : exchange_(std::move(exchange)), weights_(std::move(weights)), rank_(rank) {}
  ~EmulatedHost() override { exchange_->leave(rank_); }
  EmulatedHost(const EmulatedHost&) = delete;
  EmulatedHost& operator=(const EmulatedHost&) = delete;

  [[nodiscard]] int count() const override { return static_cast<int>(weights_.size()); }
  [[nodiscard]] int rank() const override { return static_cast<int>(rank_); }
  [[nodiscard]] std::vector<double> weights() const override { return weights_; }
  void exchange(std::span<const std::span<const std::byte>> out,
                std::span<const std::span<std::byte>> in) override {
    exchange_->give(rank_, out);
    exchange_->take(rank_, in);
  }

 private:
  std::shared_ptr<Exchange> exchange_;
  std::vector<double> weights_;
  std::size_t rank_;
};

}  // namespace

std::vector<std::shared_ptr<Hosts>> emulated_hosts(const std::vector<double>& weights) {
  const auto exchange = std::make_shared<Exchange>(weights.size());
  std::vector<std::shared_ptr<Hosts>> hosts;
  for (std::size_t rank = 0; rank < weights.size(); ++rank) {
    hosts.push_back(std::make_shared<EmulatedHost>(exchange, weights, rank));
  }
  return hosts;
}

}  // namespace rubato::test
