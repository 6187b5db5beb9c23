"""Ranks as threads of one process, with collectives that are exact and never hang: on_threads()."""

import functools
import threading


class Stuck(RuntimeError):
    """A rank waits in a collective that another one never enters."""


class Ranks:
    """The collectives of one rank. Each waits for all ranks; values are numbers, arrays or lists of numbers."""

    def __init__(self, rank, world):
        self.rank = rank
        self.world_size = world.size
        self._world = world

    def all_gather(self, value):
        """The values of all ranks, in their order."""
        return self._world.exchange(self.rank, value)

    def all_reduce(self, value, op="sum"):
        """The sum of the values of all ranks, in their order, or with op="mean" that divided by their number."""
        import numpy

        total = functools.reduce(numpy.add, [numpy.asarray(one) for one in self.all_gather(value)])
        return total / self.world_size if op == "mean" else total

    def barrier(self):
        """Waits for all ranks."""
        self.all_gather(None)


class _World:
    def __init__(self, size):
        self.size = size
        self._changed = threading.Condition()
        self._values, self._round, self._gathered = {}, 0, []
        self.ended = set()

    def exchange(self, rank, value):
        with self._changed:
            self._values[rank] = value
            mine = self._round
            if len(self._values) == self.size:
                self._gathered = [self._values[index] for index in range(self.size)]
                self._values, self._round = {}, mine + 1
                self._changed.notify_all()
            while self._round == mine:
                if self.ended:
                    raise Stuck(f"rank {rank} waits in a collective, and rank {min(self.ended)} has ended")
                self._changed.wait()
            return self._gathered

    def end(self, rank):
        with self._changed:
            self.ended.add(rank)
            self._changed.notify_all()


def on_threads(train_rank):
    """Makes a loop for check_loop() of what one rank does: train_rank(job, phase, state, ranks) is called on a thread for each
    rank, with its Ranks, and returns the state; that of rank 0 is kept."""
    @functools.wraps(train_rank)
    def train(job, phase, state):
        world, states, errors = _World(phase.world_size), {}, {}

        def run(rank):
            try:
                states[rank] = train_rank(job, phase, state, Ranks(rank, world))
            except BaseException as error:  # raised again below
                errors[rank] = error
            world.end(rank)

        threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(phase.world_size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # A rank is stuck because of another one's error.
        for error in sorted(errors.values(), key=lambda error: isinstance(error, Stuck)):
            raise error
        return states[0]

    train.has_ranks = True
    return train
