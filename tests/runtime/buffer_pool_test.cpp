#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/loop/reducer.hpp>

#include "support/matchers.hpp"

namespace rubato {
namespace {

template <class T>
bool all_equal(const PartialSum<T>& buffer, T value) {
  return std::all_of(buffer.values.begin(), buffer.values.end(),
                     [value](T v) { return v == value; });
}

template <class T>
void write_all(PartialSum<T>& buffer, std::int64_t id) {
  std::fill(buffer.values.begin(), buffer.values.end(), static_cast<T>(id));
  buffer.scalars = {.loss = static_cast<double>(id), .minibatches = id};
}

template <class T>
bool holds_only(const PartialSum<T>& buffer, std::int64_t id) {
  return all_equal(buffer, static_cast<T>(id)) && buffer.scalars.loss == static_cast<double>(id) &&
         buffer.scalars.minibatches == id;
}

template <class T>
std::vector<PartialSum<T>*> lease(BufferPool<T>& pool, std::size_t count) {
  std::vector<PartialSum<T>*> buffers;
  for (std::size_t i = 0; i < count; ++i) buffers.push_back(pool.acquire());
  return buffers;
}

template <class T>
std::size_t distinct(const std::vector<PartialSum<T>*>& buffers) {
  return std::set<PartialSum<T>*>(buffers.begin(), buffers.end()).size();
}

template <class T>
class BufferPoolOf : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(BufferPoolOf, Types);

TYPED_TEST(BufferPoolOf, GivesZeroedBuffersNewAndUsedAlike) {
  BufferPool<TypeParam> pool(100, 2);
  for (int use = 0; use < 3; ++use) {
    PartialSum<TypeParam>* buffer = pool.acquire();
    ASSERT_EQ(buffer->values.size(), 100U);
    EXPECT_TRUE(holds_only(*buffer, 0)) << "use " << use;
    write_all(*buffer, 7);
    pool.release(buffer);
  }
}

TYPED_TEST(BufferPoolOf, LeavesWhatIsOverwritten) {
  BufferPool<TypeParam> pool(100, 1);
  PartialSum<TypeParam>* buffer = pool.acquire();
  write_all(*buffer, 7);
  pool.release(buffer);
  buffer = pool.acquire(40);
  EXPECT_THAT(buffer->values.first(40), Each(7));
  EXPECT_THAT(buffer->values.subspan(40), Each(0));
  EXPECT_EQ(buffer->scalars.loss, 0);
}

TYPED_TEST(BufferPoolOf, AlignsEveryBufferToTwoCacheLines) {
  // A size that is no multiple of the alignment.
  BufferPool<TypeParam> pool(3, 5);
  for (const auto* buffer : lease(pool, 5)) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->values.data()) % 128, 0U);
  }
}

TEST(BufferPool, LeasesEveryBufferToOneOwner) {
  constexpr std::size_t kBuffers = 10;
  BufferPool<float> pool(33, kBuffers);
  const auto buffers = lease(pool, kBuffers);
  for (std::size_t i = 0; i < kBuffers; ++i) {
    EXPECT_EQ(static_cast<std::size_t>(pool.id_of(buffers[i])), i)
        << "numbered in the order in which they were made";
    write_all(*buffers[i], static_cast<std::int64_t>(i));
  }
  for (std::size_t i = 0; i < kBuffers; ++i) {
    EXPECT_TRUE(holds_only(*buffers[i], static_cast<std::int64_t>(i))) << "buffer " << i;
  }
  EXPECT_EQ(pool.max_buffers(), kBuffers);
}

TEST(BufferPool, MakesNoMoreBuffersThanAreAliveAtOneTime) {
  BufferPool<double> pool(1000, 64);
  std::map<SumId, const double*> memory;
  for (int round = 0; round < 100; ++round) {
    auto buffers = lease(pool, 4);
    for (const auto* buffer : buffers) {
      const auto [known, added] = memory.emplace(pool.id_of(buffer), buffer->values.data());
      EXPECT_EQ(known->second, buffer->values.data()) << "a buffer keeps its memory";
    }
    // In another order each time, so that the list is shuffled.
    std::rotate(buffers.begin(), buffers.begin() + round % 4, buffers.end());
    for (auto* buffer : buffers) pool.release(buffer);
  }
  EXPECT_EQ(memory.size(), 4U);
}

TEST(BufferPool, RemembersItsHighWaterMark) {
  BufferPool<float> pool(1, 8);
  EXPECT_EQ(pool.high_water(), 0);
  const auto three = lease(pool, 3);
  EXPECT_EQ(pool.high_water(), 3);
  pool.release(three[1]);
  pool.release(three[0]);
  const auto one = lease(pool, 1);
  EXPECT_EQ(pool.high_water(), 3) << "two were alive";
  const auto two = lease(pool, 2);
  EXPECT_EQ(pool.high_water(), 4);
  for (auto* buffer : two) pool.release(buffer);
  EXPECT_EQ(pool.high_water(), 4) << "a mark only rises";
}

TEST(BufferPool, ReclaimsEveryBufferOnce) {
  constexpr std::size_t kBuffers = 6;
  BufferPool<float> pool(5, kBuffers);
  auto buffers = lease(pool, 5);
  // Two are back, three are lost, the sixth was never made.
  pool.release(buffers[3]);
  pool.release(buffers[0]);
  pool.reclaim_all();
  EXPECT_EQ(pool.high_water(), 5);
  const auto again = lease(pool, kBuffers);
  EXPECT_EQ(distinct(again), kBuffers);
  for (const auto* buffer : again) EXPECT_TRUE(holds_only(*buffer, 0));
  EXPECT_EQ(pool.high_water(), 6) << "the lost ones are no longer counted as alive";
}

TEST(BufferPool, ReclaimsTimeAndAgain) {
  BufferPool<float> pool(5, 3);
  for (int step = 0; step < 100; ++step) {
    EXPECT_EQ(distinct(lease(pool, 3)), 3U);
    pool.reclaim_all();
  }
  EXPECT_EQ(pool.high_water(), 3);
}

TEST(BufferPoolDeathTest, AbortsWhenMoreAreAskedForThanThereCanBe) {
  BufferPool<float> pool(1, 2);
  const auto all = lease(pool, 2);
  EXPECT_DEATH(static_cast<void>(pool.acquire()), "no more buffers are alive");
}

// Every thread leases two buffers, signs them, gives the first back and finds its signature in the
// second for a while: taken and given back by several threads at once, the list neither hands a
// buffer out twice nor loses one. The order matters: to a thread that was held up between reading
// the head of the list and exchanging it, the list looks unchanged while its second buffer is
// leased. Small buffers, so that threads meet at the list.
class BufferPoolThreads : public testing::TestWithParam<int> {};

TEST_P(BufferPoolThreads, NeverShareABuffer) {
  const int threads = GetParam();
  constexpr int kRounds = 200'000;
  constexpr int kLooks = 20;
  const auto most = 2 * static_cast<std::size_t>(threads);
  BufferPool<float> pool(1, most);
  std::atomic<int> ready{0};
  std::atomic<std::int64_t> failures{0};
  const auto expect = [&failures](const PartialSum<float>& buffer, std::int64_t id) {
    if (!holds_only(buffer, id)) failures.fetch_add(1);
  };
  const auto work = [&](std::int64_t id) {
    ready.fetch_add(1);
    while (ready.load() < threads) std::this_thread::yield();  // all at once
    for (int round = 0; round < kRounds && failures.load() == 0; ++round) {
      PartialSum<float>* first = pool.acquire();
      PartialSum<float>* second = pool.acquire();
      expect(*first, 0);
      expect(*second, 0);
      write_all(*first, id);
      write_all(*second, id);
      expect(*first, id);
      pool.release(first);
      for (int look = 0; look < kLooks; ++look) expect(*second, id);
      pool.release(second);
    }
  };
  std::vector<std::thread> workers;
  for (int id = 1; id <= threads; ++id) workers.emplace_back(work, id);
  for (std::thread& worker : workers) worker.join();

  EXPECT_EQ(failures.load(), 0);
  EXPECT_LE(pool.high_water(), static_cast<std::int64_t>(most));
  EXPECT_EQ(distinct(lease(pool, most)), most) << "none is in the list twice, none is lost";
}

INSTANTIATE_TEST_SUITE_P(Threads, BufferPoolThreads, testing::Values(1, 2, 4, 8));

}  // namespace
}  // namespace rubato
