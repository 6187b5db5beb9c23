"""What torch and the original experiments have, in the form that check_sampler() and check_loop() take. Needs torch, but for
custom_sampler()."""

import contextlib
import functools
import multiprocessing
import os
import pickle
import tempfile
import traceback

from ._ranks import Stuck


def _named(function, maker, options):
    """The function with a name that says how it was made."""
    function.__qualname__ = f"{maker}({', '.join(f'{word}={value!r}' for word, value in options.items())})"
    return function


def distributed_sampler(make=None, **options):
    """A sampler for check_sampler() of torch's DistributedSampler, or of a class with its interface, with these options."""
    def sampler(samples, world_size, rank, epoch):
        if make is None:
            from torch.utils.data.distributed import DistributedSampler as kind
        else:
            kind = make
        made = kind(range(samples), num_replicas=world_size, rank=rank, **options)
        made.set_epoch(epoch)
        return made

    return _named(sampler, "distributed_sampler", options)


def data_loader(sampler=None, **options):
    """A sampler for check_sampler() of torch's DataLoader, which takes minibatches from a sampler (distributed_sampler() by
    default). The options are those of DataLoader."""
    inner = sampler or distributed_sampler()

    def loader(samples, world_size, rank, epoch, minibatch):
        from torch.utils.data import DataLoader

        indices = inner(samples=samples, world_size=world_size, rank=rank, epoch=epoch)
        return (batch.tolist() for batch in DataLoader(range(samples), batch_size=minibatch, sampler=indices, **options))

    return _named(loader, "data_loader", options)


def custom_sampler(make, **options):
    """A sampler for check_sampler() of a class with the interface of elastic-learning-rate-evaluation's CustomSampler:
    make(dataset, trace=, num_replicas=, rank=, minibatch_size=, seed=) with set_epoch(), get_batch_assignments(), which lists the
    minibatches of this rank for each step, and an iterator of samples, which has one minibatch of sample 0 for a step in which
    the rank has none. That minibatch is left out here. Use it with last="drop"."""
    def sampler(samples, world_size, rank, epoch, batch, seed):
        made = make(range(samples), trace=batch, num_replicas=world_size, rank=rank, minibatch_size=1, seed=seed, **options)
        made.set_epoch(epoch)
        indices = iter(made)
        for minibatches in made.get_batch_assignments():
            taken = [int(next(indices)) for _ in range(max(1, len(minibatches)))]
            yield taken if minibatches else []

    return _named(sampler, "custom_sampler", options)


class RankError(RuntimeError):
    """What a rank of on_processes() raised, with its place."""


def _run_rank(train_rank, job, phase, state, rank, file, pipe):
    """One rank, in a process of its own."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    final = failed = None
    try:
        dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=phase.world_size)
        final = train_rank(job, phase, state)
        # No rank ends while another one still reads from it.
        dist.barrier()
    except BaseException as error:  # sent to the parent
        at = traceback.extract_tb(error.__traceback__)[-1]
        failed = f"{type(error).__name__}: {error} ({os.path.basename(at.filename)}, line {at.lineno}: {at.line})"
    # The bytes, as torch would share the memory of tensors, which ends with this process.
    pipe.send_bytes(pickle.dumps((job.entries, job.reads_tokens, final if rank == 0 else None, failed)))
    os._exit(0)


def on_processes(train_rank, timeout=60):
    """Makes a loop for check_loop() of what one rank does with torch.distributed: train_rank(job, phase, state) is called in a
    process for each rank, with a process group of gloo, and returns the state; that of rank 0 is kept, and has to be such that
    pickle takes it. Ranks that take longer than `timeout` seconds are stuck.

    The processes are forks of this one, in which torch must not have computed gradients.
    """
    def train(job, phase, state):
        fork = multiprocessing.get_context("fork")
        with tempfile.TemporaryDirectory(prefix="rubato-") as folder:
            ranks = []
            for rank in range(phase.world_size):
                here, there = fork.Pipe(duplex=False)
                process = fork.Process(target=_run_rank, args=(train_rank, job, phase, state, rank, f"{folder}/store", there),
                                       daemon=True)
                process.start()
                there.close()
                ranks.append((process, here))
            answers = []
            try:
                for rank, (process, here) in enumerate(ranks):
                    if not here.poll(timeout):
                        raise Stuck(f"rank {rank} has not ended after {timeout} s")
                    with contextlib.suppress(EOFError):
                        answers.append(pickle.loads(here.recv_bytes()))
            finally:
                for process, here in ranks:
                    process.kill()
                    process.join()
                    here.close()
        for failed in (answer[3] for answer in answers if answer[3]):
            raise RankError(failed)
        if len(answers) < len(ranks):
            raise RankError("a rank has ended without an answer")
        known = len(job.entries)
        for entries, reads_tokens, _, _ in answers:
            job.entries += entries[known:]
            job.reads_tokens |= reads_tokens
        return answers[0][2]

    train.has_ranks = True
    return functools.wraps(train_rank)(train)


def ddp(join=True, pad=True, timeout=60):
    """The loop of PyTorch's tutorials for check_loop(): DistributedSampler, DataLoader and DistributedDataParallel, with Join if
    asked for, SGD, and a checkpoint of model, epoch and batch, after which a resume skips the batches that it has seen. Without
    `pad`, ranks have every world_size-th sample of the same order, and some one less."""
    def train_rank(job, phase, state):
        import torch
        import torch.distributed as dist
        from torch.distributed.algorithms.join import Join
        from torch.nn.parallel import DistributedDataParallel
        from torch.utils.data import DataLoader, TensorDataset
        from torch.utils.data.distributed import DistributedSampler

        rank = dist.get_rank()
        state = state or {"weight": torch.zeros(1, job.samples), "step": 0, "epoch": 0, "batches": 0}
        model = torch.nn.Linear(job.samples, 1, bias=False)
        with torch.no_grad():
            model.weight.copy_(state["weight"])
        model = DistributedDataParallel(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        data = TensorDataset(torch.tensor(job.inputs, dtype=torch.float32))
        sampler = DistributedSampler(data, seed=job.seed)
        step, epoch, seen = state["step"], state["epoch"], state["batches"]
        end, longest = step + phase.steps, -(-job.samples // (phase.minibatch * phase.world_size))
        while step < end:
            sampler.set_epoch(epoch)
            order = list(sampler) if pad else torch.randperm(
                job.samples, generator=torch.Generator().manual_seed(job.seed + epoch))[rank::phase.world_size].tolist()
            batches = list(DataLoader(data, batch_size=phase.minibatch, sampler=order))[seen:seen + end - step]
            with Join([model]) if join else contextlib.nullcontext():
                for index, (inputs,) in enumerate(batches):
                    optimizer.param_groups[0]["lr"] = job.rate(step + index, phase.batch)
                    optimizer.zero_grad()
                    (-model(inputs)).mean().backward()
                    optimizer.step()
                    job.record(model.module.weight, rank=rank)
            done = min(longest - seen, end - step)
            step, seen = step + done, seen + done
            if seen >= longest:
                epoch, seen = epoch + 1, 0
        return {"weight": model.module.weight.detach(), "step": step, "epoch": epoch, "batches": seen}

    return _named(on_processes(train_rank, timeout), "ddp", {"join": join, "pad": pad})
