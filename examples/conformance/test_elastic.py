"""The loop and its sampler conform: pytest, or pytest --rubato-traces=spot.csv."""

import sys

import torch
from elastic import ElasticSampler, train
from rubato.conformance import check_loop, check_resume, check_sampler
from rubato.conformance.adapters import on_processes


def test_sampler():
    check_sampler(ElasticSampler)


@on_processes
def loop(job, phase, state):
    """The training loop on the model, data, loss and rates of rubato.conformance."""
    model = torch.nn.Linear(job.samples, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    return train(model, torch.tensor(job.inputs, dtype=torch.float32), lambda outputs: -outputs.sum(), state, steps=phase.steps,
                 batch=phase.batch, rate=job.rate, after_step=lambda step, model: job.record(model.weight, step=step - 1), seed=job.seed)


def test_loop():
    check_loop(loop, ranks=3, cases=20)


def test_program():
    # Debian 12's torchrun needs --redirects and --tee with Python 3.11.
    check_resume([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node={processes}",
                  "--redirects=1", "--tee=1", "train.py"], cases=2)
