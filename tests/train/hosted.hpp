#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <rubato/testing.hpp>

#include "support/error_of.hpp"

namespace rubato::test {

/// A trainer on each host, and what its fit() has thrown.
struct Hosted {
  std::vector<std::unique_ptr<Trainer>> trainers;
  std::vector<std::shared_ptr<Recorder>> recorders;
  std::vector<std::string> errors;
};

using MakeHosted = std::function<std::unique_ptr<Trainer>(std::shared_ptr<Hosts> hosts)>;

/// Trains on emulated hosts of these weights, each on a thread of its own.
inline Hosted train_on(const std::vector<double>& weights, const MakeHosted& make) {
  Hosted hosted;
  std::vector<std::shared_ptr<Hosts>> hosts = emulated_hosts(weights);
  for (std::shared_ptr<Hosts>& host : hosts) {
    hosted.trainers.push_back(make(std::move(host)));
    hosted.recorders.push_back(hosted.trainers.back()->add_observer<Recorder>());
  }
  hosted.errors.resize(hosts.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    threads.emplace_back([&hosted, i] {
      hosted.errors[i] = error_of([&] { hosted.trainers[i]->fit(); });
      // Nobody is to wait for it.
      if (hosted.errors[i] != "no error") hosted.trainers[i].reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return hosted;
}

/// Every host has trained to the bits of `alone`.
inline void expect_bits(const Hosted& hosted, const Trainer& alone) {
  for (std::size_t host = 0; host < hosted.trainers.size(); ++host) {
    ASSERT_EQ(hosted.errors[host], "no error");
    EXPECT_EQ(difference_of(*hosted.trainers[host], alone), std::nullopt);
  }
}

}  // namespace rubato::test
