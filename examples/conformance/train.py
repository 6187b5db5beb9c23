"""A program with a checkpoint after every step, which trains on as many processes as torchrun starts."""

import sys
from pathlib import Path

import torch
import torch.distributed as dist
from elastic import train
from rubato.conformance import current_job


def main():
    job = current_job() or sys.exit("train.py is a program for rubato.conformance; here your data and model would follow")
    dist.init_process_group("gloo")
    checkpoint = Path(job.folder, "checkpoint.pt")
    state = torch.load(checkpoint) if checkpoint.exists() else None
    model = torch.nn.Linear(job.samples, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    inputs = torch.tensor(job.inputs, dtype=torch.float32)
    while (state["step"] if state else 0) < job.steps:
        state = train(model, inputs, lambda outputs: -outputs.sum(), state, steps=1, batch=job.batch, rate=job.rate,
                      after_step=lambda step, model: None, seed=job.seed)
        # The checkpoint is complete before it has its name.
        if dist.get_rank() == 0:
            torch.save(state, checkpoint.with_suffix(".new"))
            checkpoint.with_suffix(".new").rename(checkpoint)
        dist.barrier()
        job.record(model.weight, rank=dist.get_rank(), step=state["step"] - 1)


if __name__ == "__main__":
    main()
