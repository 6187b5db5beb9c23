# Made from src/clients/python/rubato.pyi.in and the table of options by src/clients/python/make_stubs.py:
# RUBATO_UPDATE_DOCS=1 ctest -R python.Stubs makes it anew.

from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from types import ModuleType
from typing import Any

import numpy
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

__version__: str
models: ModuleType

_Array = Tensor | ArrayLike
_Data = tuple[_Array | Sequence[_Array], _Array | Sequence[_Array]] | Dataset | DataLoader
_Trace = Trace | Availability | Iterable[int | tuple[int, int | Sequence[int] | None]] | str | PathLike[str] | int
_Path = str | PathLike[str]
_Callback = Callable[[dict[str, Any]], bool | dict[str, float] | None]
_Rule = Callable[[int, dict[str, Any]], float | dict[str, float]]

class Error(RuntimeError): ...
class OutputError(Error): ...
class TrainingError(Error): ...
class OutOfMemory(Error, MemoryError): ...

class Diverged(Error):
    result: TrainResult

class TargetMissed(Error):
    result: TrainResult

class Columns(dict[str, numpy.ndarray]):
    @property
    def rows(self) -> int: ...
    def to_pandas(self) -> Any: ...

class TrainResult:
    steps: Columns
    epochs: Columns
    minibatches: Columns
    faults: Columns
    monitored: Columns
    state_dict: dict[str, Tensor]
    other_weights: dict[str, dict[str, Tensor]]
    best_epoch: int | None
    summary: dict[str, Any]
    folder: str | None
    @property
    def sha256(self) -> str | None: ...
    @property
    def digest(self) -> str | None: ...
    @property
    def test_accuracy(self) -> float | None: ...
    @property
    def stopped(self) -> str | None: ...
    @property
    def module(self) -> torch.jit.ScriptModule: ...
    def predict(self, inputs: _Array | Sequence[_Array]) -> Tensor | list[Tensor]: ...
    def evaluate(self, inputs: _Array | Sequence[_Array], targets: _Array | Sequence[_Array]) -> dict[str, float]: ...

class Hosts:
    def __init__(self, rendezvous: str, count: int = 1, least: int = 1, most: int | None = None, *, weight: float = 1.0,
                 interface: str = "127.0.0.1", token_file: _Path | None = None, timeout: float = 300.0) -> None: ...

def train(
    model: str | torch.nn.Module | None = None,
    data: str | PathLike[str] | _Data | None = None,
    *,
    trace: _Trace | None = None,
    batch_size: int | None = None,
    validation: _Data | float | str | None = None,
    loss: str | Callable[..., Tensor] | None = None,
    rule: str | _Rule | None = None,
    out: _Path | None = None,
    resume: _Path | None = None,
    config: _Path | None = None,
    from_run: _Path | None = None,
    from_step: int | None = None,
    hosts: Hosts | None = None,
    on_step: _Callback | None = None,
    on_epoch: _Callback | None = None,
    progress: bool = False,
    plugin: str | PathLike[str] | None = None,
    sampler: str | None = None,
    weights: str | PathLike[str] | dict[str, Tensor] | None = None,
    engine: str | None = None,
    init: str | None = None,
    precision: str | None = None,
    operators: str | None = None,
    buffers: str | None = None,
    augment: str | None = None,
    label_smoothing: float | None = None,
    availability: str | None = None,
    on_trace_end: str | None = None,
    cores: int | None = None,
    minibatch: int | None = None,
    remainder: str | None = None,
    assignment: str | None = None,
    clock: str | None = None,
    cluster: str | None = None,
    price: str | None = None,
    on_idle: str | None = None,
    market: str | None = None,
    deadline: float | None = None,
    batch: str | None = None,
    ref_batch: int | None = None,
    lr: float | None = None,
    schedule: str | None = None,
    schedule_unit: str | None = None,
    optimizer: str | None = None,
    momentum: float | None = None,
    nesterov: bool | None = None,
    weight_decay: float | None = None,
    no_decay: str | None = None,
    clip_norm: float | None = None,
    clip_value: float | None = None,
    transform: str | None = None,
    lookahead: int | None = None,
    lookahead_alpha: float | None = None,
    lookahead_start: str | None = None,
    lookahead_weights: str | None = None,
    ema: float | None = None,
    memory: str | None = None,
    decay_rule: str | None = None,
    on_batch_change: str | None = None,
    epochs: int | None = None,
    iterations: float | None = None,
    samples: int | None = None,
    hours: float | None = None,
    money: float | None = None,
    seed: int | None = None,
    threads: int | None = None,
    kernels: str | None = None,
    reduce: str | None = None,
    watch: str | None = None,
    patience: int | None = None,
    min_delta: float | None = None,
    keep_best: bool | None = None,
    top_k: int | None = None,
    metric: str | None = None,
    exact: bool | None = None,
    target_accuracy: str | float | None = None,
    checkpoint_every: str | None = None,
    keep: int | None = None,
    fault: str | None = None,
    faults: str | None = None,
    straggler: str | None = None,
    log_noise: bool | None = None,
    digest: str | None = None,
    log_minibatches: bool | None = None,
    monitor: str | None = None,
    monitor_every: int | None = None,
    tensorboard: bool | None = None,
    histograms: str | None = None,
    histograms_every: int | None = None,
    timeline: str | None = None,
) -> TrainResult: ...

class Epoch:
    index: int
    complete: bool
    steps: Columns
    def shares(self, row: int) -> list[list[int]]: ...

def plan(
    trace: _Trace | None = None,
    *,
    dataset_size: int | None = None,
    epochs: int | None = None,
    availability: str | None = None,
    on_trace_end: str | None = None,
    cores: int | None = None,
    minibatch: int | None = None,
    remainder: str | None = None,
    assignment: str | None = None,
) -> list[Epoch]: ...

def simulate(
    trace: _Trace | None = None,
    *,
    dataset_size: int | None = None,
    plugin: Any = None,
    model: Any = None,
    availability: Any = None,
    on_trace_end: Any = None,
    cores: Any = None,
    minibatch: Any = None,
    remainder: Any = None,
    cluster: Any = None,
    price: Any = None,
    on_idle: Any = None,
    market: Any = None,
    deadline: Any = None,
    batch: Any = None,
    epochs: Any = None,
    samples: Any = None,
    hours: Any = None,
    money: Any = None,
    straggler: Any = None,
) -> Columns: ...

class Comparison:
    answer: dict[str, Any]
    text: str
    cells: Columns
    runs: Columns
    folder: str | None

def compare(*, out: _Path | None = None, **options: Any) -> Comparison: ...

class Trace:
    def __init__(self, steps: Iterable[int | tuple[int, int | Sequence[int] | None]], end: str = "error") -> None: ...
    @staticmethod
    def read(name: _Path | int, end: str | None = None) -> Trace | Availability: ...
    @staticmethod
    def import_file(path: _Path, format: str | None = None, end: str = "error") -> Availability: ...
    @staticmethod
    def generate(text: str, end: str = "error") -> Availability: ...
    @staticmethod
    def generators() -> list[str]: ...
    @property
    def end(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def batch_sizes(self) -> numpy.ndarray: ...
    @property
    def cores(self) -> numpy.ndarray: ...
    def to_csv(self, path: _Path | None = None) -> str | None: ...
    def plot(self, axes: Any = None) -> Any: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[tuple[int, int | list[int] | None]]: ...

class Availability:
    def __init__(self, seconds: Iterable[float], devices: Iterable[int], length: float, end: str = "error") -> None: ...
    @property
    def end(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def seconds(self) -> numpy.ndarray: ...
    @property
    def devices(self) -> numpy.ndarray: ...
    @property
    def length(self) -> float: ...
    @property
    def summary(self) -> dict[str, float]: ...
    def to_trace(self, availability: str = "weak", minibatch: int = 32) -> Trace: ...
    def to_csv(self, path: _Path | None = None) -> str | None: ...
    def plot(self, axes: Any = None) -> Any: ...

class AdaScale(torch.optim.Optimizer):
    def __init__(self, optimizer: torch.optim.Optimizer, world_size: int | None = None, scale: float | None = None,
                 smoothing: float | None = None, num_gradients_to_accumulate: int = 1, debias_ewma: bool = True,
                 is_scaled_loss: bool = True, smallest_variance: float | None = 1e-06) -> None: ...
    @property
    def world_size(self) -> int: ...
    @property
    def num_gradients_to_accumulate(self) -> int: ...
    @property
    def scale(self) -> float: ...
    @property
    def smoothing(self) -> float: ...
    def gain(self, pg_idx: int | None = None) -> float: ...
    def set_scale(self, scale: float, update_estimate: bool = True) -> None: ...
    def set_num_gradients_to_accumulate(self, num_gradients_to_accumulate: int, update_smoothing: bool = True) -> None: ...
    def scale_grad_by_num_grads_to_accum(self) -> None: ...
    def step(self, closure: Callable[[], Any] | None = None) -> Any: ...
    def unhook(self) -> None: ...
