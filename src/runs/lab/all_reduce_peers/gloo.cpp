// Measures gloo's all-reduce on ranks that are threads of this process, over the loopback device.

#include <atomic>
#include <barrier>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/hash_store.h>
#include <gloo/transport/tcp/device.h>

#include "runs/lab/contestants.hpp"
#include "timing.hpp"

namespace {

using rubato::lab::payload;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Later versions of gloo than 2023 share the store.
template <class Context>
void connect(Context& context, const std::shared_ptr<gloo::rendezvous::HashStore>& store) {
  gloo::transport::tcp::attr attributes;
  attributes.hostname = "localhost";
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  if constexpr (requires { context.connectFullMesh(store, device); }) {
    context.connectFullMesh(store, device);
  } else {
    context.connectFullMesh(*store, device);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto task = rubato::lab::peer_task(argc, argv);
  const auto store = std::make_shared<gloo::rendezvous::HashStore>();
  rubato::lab::PeerRuns runs(task);
  std::atomic<bool> right{true};
  std::atomic<bool> done{false};
  Clock::time_point start;
  // All ranks begin and end every run together.
  std::barrier begin(task.ranks, [&]() noexcept { start = Clock::now(); });
  std::barrier end(task.ranks, [&]() noexcept {
    runs.add(seconds_since(start));
    done = !runs.more();
  });

  const auto run_rank = [&](int rank) {
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, task.ranks);
    connect(*context, store);
    std::vector<float> buffer(task.size);
    rubato::lab::Flusher flusher(task.cache, rubato::lab::flushed_bytes(task.ranks));
    for (bool first = true; !done; first = false) {
      for (std::size_t k = 0; k < buffer.size(); ++k) buffer[k] = payload(rank, k);
      flusher.flush();
      begin.arrive_and_wait();
      while (seconds_since(start) < runs.arrivals()[static_cast<std::size_t>(rank)]) {
      }
      gloo::AllreduceOptions options(context);
      options.setOutput(buffer.data(), buffer.size());
      options.setReduceFunction([](void* out, const void* a, const void* b, std::size_t n) {
        gloo::sum<float>(out, a, b, n);
      });
      gloo::allreduce(options);
      end.arrive_and_wait();
      for (std::size_t k = 0; first && k < buffer.size(); ++k) {
        float sum = 0;
        for (int other = 0; other < task.ranks; ++other) sum += payload(other, k);
        if (buffer[k] != sum) right = false;
      }
    }
  };
  std::vector<std::thread> ranks;
  ranks.reserve(static_cast<std::size_t>(task.ranks));
  for (int rank = 0; rank < task.ranks; ++rank) ranks.emplace_back(run_rank, rank);
  for (std::thread& rank : ranks) rank.join();
  if (right) rubato::lab::print_timings(runs.seconds());
  return right ? 0 : 1;
}
