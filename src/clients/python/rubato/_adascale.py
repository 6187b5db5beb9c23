"""AdaScale around a PyTorch optimizer, for your own training loops."""

import weakref

import torch

from . import _rubato
from ._rubato import AdaScaleEstimator, Error


def _square(gradient):
    """The sum of the squares, in float64."""
    values = gradient.coalesce().values() if gradient.is_sparse else gradient
    return float(values.detach().double().square().sum())


def _hook(adascale, index):
    """Records the gradients of a parameter for as long as its AdaScale exists."""
    reference = weakref.ref(adascale)

    def note(gradient):
        owner = reference()
        if owner is not None:
            owner._note(index, gradient)

    return note


class AdaScale(torch.optim.Optimizer):
    """AdaScale (Johnson et al. 2020) around any torch.optim optimizer, with the interface and the numbers of
    fairscale's AdaScale.

        optimizer = rubato.AdaScale(torch.optim.SGD(model.parameters(), lr=0.1), num_gradients_to_accumulate=4)
        for step in range(steps):
            optimizer.zero_grad()
            for inputs, targets in four_batches:
                (loss(model(inputs), targets) / 4).backward()
            optimizer.step()

    world_size:
        workers that each run backward on a share of the batch; when step() is called, gradients are means over all of
        them, as DistributedDataParallel leaves them. [that of torch.distributed if it is initialised, else 1]
    scale:
        batch size relative to the one that the learning rate was tuned for, above 0. [gradients in a step]
    smoothing:
        smoothing of the averages, from 0 to below 1. [max(1 - gradients in a step / 1000, 0)]
    num_gradients_to_accumulate:
        backward passes of this worker in a step; world_size times it is at least 2.
    debias_ewma:
        whether averages are debiased; else the first values are averaged plainly.
    is_scaled_loss:
        whether every loss is divided by num_gradients_to_accumulate. If not, step() divides the gradients, unless
        scale_grad_by_num_grads_to_accum() has done so.

    smallest_variance:
        a variance of the gradients below it counts as this much; fairscale's 1e-6 makes the gain equal to the scale where
        gradients are small, as at the end of a fit. None is a millionth of the squared gradients, as in rubato.train().

    It measures with hooks on the parameters, so every backward pass counts. A step is measured when its last backward
    pass ends, so that gradients may be clipped before step(). If you average the gradients of several workers yourself
    after that, the first gain() or step() measures: call gain() before you clip. Misuse raises
    Error. docs/techniques.md lists the differences from fairscale.
    """

    def __init__(self, optimizer, world_size=None, scale=None, smoothing=None, num_gradients_to_accumulate=1,
                 debias_ewma=True, is_scaled_loss=True, smallest_variance=1e-6):
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise Error(f"AdaScale: {type(optimizer).__name__} is not an optimizer; accepted: a torch.optim.Optimizer")
        distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
        self._optimizer = optimizer
        if world_size is None:
            world_size = torch.distributed.get_world_size() if distributed else 1
        _rubato.require_gradients(world_size, num_gradients_to_accumulate)
        self._world_size = world_size
        self._accumulate = num_gradients_to_accumulate
        self._is_scaled_loss = is_scaled_loss
        self._averages = debias_ewma, smallest_variance
        if self._world_size > 1 and not distributed:
            raise Error(f"AdaScale: {self._world_size} workers, and torch.distributed is not initialised; accepted: "
                        "after init_process_group()")
        self._scale = _rubato.checked_scale(self._gradients if scale is None else scale)
        self._estimator = AdaScaleEstimator(smoothing, *self._averages, 0)
        self._parameters = []
        self._hooks = []
        self._squares = []
        self._hooked = True
        # Number of gradients of a last backward pass, and of those that self._norms includes.
        self._last_gradients = self._known_gradients = 0
        self._reset()
        for group in optimizer.param_groups:
            self._hook_group(group)

    # --- interface of optimizers ---

    @property
    def param_groups(self):
        return self._optimizer.param_groups

    @property
    def state(self):
        return self._optimizer.state

    @property
    def defaults(self):
        return self._optimizer.defaults

    def __getattr__(self, name):
        if name == "_optimizer":
            raise AttributeError(name)
        return getattr(self._optimizer, name)

    def __repr__(self):
        return f"AdaScale({self._optimizer!r})"

    # --- the estimate ---

    @property
    def world_size(self):
        return self._world_size

    @property
    def num_gradients_to_accumulate(self):
        return self._accumulate

    @property
    def scale(self):
        return self._scale

    @property
    def smoothing(self):
        return self._estimator.smoothing(self._gradients)

    def gain(self, pg_idx=None):
        """The gain of one parameter group, or of all together: that of this step once all its backward passes are done,
        that of the previous step until then, and before the first min(1, scale)."""
        self._measure()
        if pg_idx is None:
            return self._estimator.gain(self._scale)
        return self._estimator.gain_of_group(self._scale, pg_idx)

    def set_scale(self, scale, update_estimate=True):
        """Sets the scale from the next step on. update_estimate rescales the average variance, as fairscale does; in
        the paper it stays."""
        self._require_between_steps("set_scale()")
        scale = _rubato.checked_scale(scale)
        if update_estimate:
            self._estimator.rescale_variance(self._scale / scale)
        self._scale = scale

    def set_num_gradients_to_accumulate(self, num_gradients_to_accumulate, update_smoothing=True):
        """Sets the number from the next step on. update_smoothing sets the smoothing to its default for that number.
        The scale stays."""
        self._require_between_steps("set_num_gradients_to_accumulate()")
        _rubato.require_gradients(self._world_size, num_gradients_to_accumulate)
        before = self.smoothing
        self._accumulate = num_gradients_to_accumulate
        self._estimator.set_smoothing(None if update_smoothing else before)

    # --- the loop ---

    def step(self, closure=None):
        """Multiplies the learning rate of each group by its gain, lets the optimizer step, and restores the rates. A
        closure clears the gradients, runs all backward passes of the step and returns the loss, which step() returns."""
        loss = None
        if closure is not None:
            done = self._backwards()
            if done > 0:
                raise Error(f"AdaScale: step(closure) after {done} of {self._accumulate} backward passes; accepted: all "
                            "of them in the closure, or step()")
            with torch.enable_grad():
                loss = closure()
        self._require_all_backwards("step()")
        self._measure()
        if not self._is_scaled_loss and not self._divided:
            self._divide_gradients()
        rates = [group["lr"] for group in self.param_groups]
        try:
            for index, group in enumerate(self.param_groups):
                group["lr"] = rates[index] * self._estimator.gain_of_group(self._scale, index)
            self._optimizer.step()
        finally:
            for rate, group in zip(rates, self.param_groups):
                group["lr"] = rate
        self._reset()
        return loss

    def zero_grad(self, set_to_none=False):
        """Clears the gradients. If no step() has come before, this drops all backward passes since the last step, as
        after an overflow; they leave nothing in the estimates."""
        self._forget_measurement()
        self._reset()
        self._optimizer.zero_grad(set_to_none=set_to_none)

    def scale_grad_by_num_grads_to_accum(self):
        """Divides the gradients by num_gradients_to_accumulate, so that step() does not."""
        self._require_all_backwards("scale_grad_by_num_grads_to_accum()")
        if self._is_scaled_loss:
            raise Error("AdaScale: scale_grad_by_num_grads_to_accum() of losses that are divided already; accepted: with "
                        "is_scaled_loss=False")
        if self._divided:
            raise Error("AdaScale: scale_grad_by_num_grads_to_accum() twice in a step")
        # The accumulated gradients are measured before they are divided.
        self._measure()
        self._divide_gradients()

    def add_param_group(self, param_group):
        """Adds a parameter group to the optimizer, measured from the next step on."""
        self._require_between_steps("add_param_group()")
        self._optimizer.add_param_group(param_group)
        if self._hooked:
            self._hook_group(self.param_groups[-1])

    def state_dict(self):
        self._require_between_steps("state_dict()")
        return {"optimizer": self._optimizer.state_dict(),
                "adascale": {"scale": self._scale, "num_gradients_to_accumulate": self._accumulate,
                             "smoothing": self._estimator.fixed_smoothing(), "averages": self._estimator.state()}}

    def load_state_dict(self, state_dict):
        self._require_between_steps("load_state_dict()")
        try:
            own = state_dict["adascale"]
            scale, accumulate, averages = own["scale"], own["num_gradients_to_accumulate"], own["averages"]
            smoothing, of_optimizer = own["smoothing"], state_dict["optimizer"]
        except (KeyError, TypeError, IndexError):
            raise Error("this is not a state of AdaScale; accepted: what state_dict() returns") from None
        # Everything is checked before anything changes; the optimizer checks its own state last.
        _rubato.require_gradients(self._world_size, accumulate)
        scale = _rubato.checked_scale(scale)
        estimator = AdaScaleEstimator(smoothing, *self._averages, len(self._squares))
        estimator.load_state(averages)
        self._optimizer.load_state_dict(of_optimizer)
        self._estimator, self._scale, self._accumulate = estimator, scale, accumulate

    def unhook(self):
        """Removes the hooks: from now on backward passes do not count, and step() raises Error."""
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self._hooked = False
        self._reset()

    # --- inside ---

    @property
    def _gradients(self):
        return self._world_size * self._accumulate

    def _hook_group(self, group):
        index = len(self._squares)
        self._squares.append(0.0)
        self._estimator.add_group()
        for tensor in group["params"]:
            self._parameters.append([tensor, index, 0])
            if tensor.requires_grad:
                self._hooks.append(tensor.register_hook(_hook(self, len(self._parameters) - 1)))

    def _note(self, index, gradient):
        parameter = self._parameters[index]
        if parameter[2] == self._accumulate:
            raise Error(f"AdaScale: more than {self._accumulate} backward passes without a step; accepted: step(), or "
                        "zero_grad(), which drops them")
        parameter[2] += 1
        self._squares[parameter[1]] += _square(gradient)
        if parameter[2] < self._accumulate:
            return
        # This gradient, and others, will have been accumulated by the end of the pass; the callbacks that run
        # then average those of several workers. Queueing twice puts this callback after them.
        self._last_gradients += 1
        queue = torch.autograd.Variable._execution_engine.queue_callback
        queue(lambda: queue(self._end_backward))

    def _end_backward(self):
        # Every gradient queues this callback; the first call does all the work.
        if self._known_gradients == self._last_gradients:
            return
        self._known_gradients = self._last_gradients
        # A measurement after an earlier pass is dropped: a step may have several passes for each minibatch.
        self._forget_measurement()
        norms, are_means = self._measured_norms()
        self._norms = norms if are_means else None
        self._has_ended = True

    def _backwards(self):
        return max((count for _, _, count in self._parameters), default=0)

    def _require_between_steps(self, what):
        done = self._backwards()
        if done > 0:
            raise Error(f"AdaScale: {what} in the middle of an accumulation, after {done} of {self._accumulate} backward "
                        "passes; accepted: after step(), or zero_grad(), which drops them")

    def _require_all_backwards(self, what):
        if not self._hooked:
            raise Error(f"AdaScale: {what} after unhook()")
        done = self._backwards()
        if done != self._accumulate:
            raise Error(f"AdaScale: {what} after {done} of {self._accumulate} backward passes")
        if not self._has_ended:
            raise Error(f"AdaScale: {what} after a last backward pass that did not end; accepted: after zero_grad(), "
                        "which drops the accumulation")

    def _measured_norms(self):
        """The norms of each group, and whether gradients are means over the workers: the same on all of them."""
        # The gradients of a scaled loss are 1 / count of what they should be; otherwise the accumulated gradient is count
        # times the mean.
        count = self._accumulate
        undo_local, undo_sum = (count * count, 1) if self._is_scaled_loss else (1, 1 / (count * count))
        means = [0.0] * len(self._squares)
        for tensor, group, _ in self._parameters:
            if tensor.grad is not None:
                means[group] += _square(tensor.grad) * undo_sum
        squares, are_means = list(self._squares), True
        if self._world_size > 1:
            sums = torch.tensor([squares, means, [mean * mean for mean in means]], dtype=torch.float64)
            torch.distributed.all_reduce(sums)
            squares, of_means, of_squares = sums.tolist()
            are_means = all(abs(self._world_size * square - mean * mean) <= 1e-9 * mean * mean
                            for mean, square in zip(of_means, of_squares))
        return [(square * undo_local / self._gradients, mean) for square, mean in zip(squares, means)], are_means

    def _measure(self):
        """Takes in the gradients of the step once all of them are there."""
        if self._before is not None or not self._has_ended or self._backwards() != self._accumulate:
            return
        norms = self._norms or self._measured_norms()[0]
        self._before = self._estimator.state()
        self._estimator.update(norms, self._gradients, self._scale)

    def _forget_measurement(self):
        """Restores the estimates from before _measure()."""
        if self._before is not None:
            self._estimator.load_state(self._before)
            self._before = None

    def _divide_gradients(self):
        self._divided = True
        for tensor, _, _ in self._parameters:
            if tensor.grad is not None:
                tensor.grad.div_(self._accumulate)

    def _reset(self):
        for parameter in self._parameters:
            parameter[2] = 0
        self._squares = [0.0] * len(self._squares)
        # The norms at the end of the last backward pass, whether it has ended, and the estimates before this measurement.
        self._norms = self._before = None
        self._has_ended = False
        self._divided = False
