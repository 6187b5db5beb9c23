// Measures MPI_Allreduce on the ranks that mpirun started, each a process with a buffer of its own.

#include <vector>

#include <mpi.h>

#include "runs/lab/contestants.hpp"
#include "timing.hpp"

int main(int argc, char** argv) {
  using rubato::lab::payload;
  MPI_Init(&argc, &argv);
  const auto task = rubato::lab::peer_task(argc, argv);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  std::vector<float> buffer(task.size);
  rubato::lab::Flusher flusher(task.cache, rubato::lab::flushed_bytes(ranks));
  rubato::lab::PeerRuns runs(task);
  bool right = true;
  for (bool first = true; runs.more(); first = false) {
    for (std::size_t k = 0; k < buffer.size(); ++k) buffer[k] = payload(rank, k);
    flusher.flush();
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    while (MPI_Wtime() - start < runs.arrivals()[static_cast<std::size_t>(rank)]) {
    }
    MPI_Allreduce(MPI_IN_PLACE, buffer.data(), static_cast<int>(buffer.size()), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
    const double own = MPI_Wtime() - start;
    double slowest = 0;
    MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    runs.add(slowest);
    for (std::size_t k = 0; first && k < buffer.size(); ++k) {
      float sum = 0;
      for (int other = 0; other < ranks; ++other) sum += payload(other, k);
      right = right && buffer[k] == sum;
    }
  }
  if (rank == 0 && right) rubato::lab::print_timings(runs.seconds());
  MPI_Finalize();
  return right ? 0 : 1;
}
