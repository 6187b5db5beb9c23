"""What progress=True shows."""

import sys
import time

# Seconds between two drawings of the line.
_REDRAW = 0.1


def _short(number):
    """Such as 843, 29.8k, 1.2M."""
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.0f}"


class Progress:
    """Writes a line for each epoch to sys.stderr and, on a terminal, shows the step in progress."""

    def __init__(self):
        self._out = sys.stderr
        # A notebook is no terminal, and draws over a line all the same.
        self._redraws = self._out.isatty() or "ipykernel" in sys.modules
        self._width = 0
        self._drawn = 0.0
        self._epoch = {}
        self._begun = 0.0
        self._samples = 0

    def on_epoch_begin(self, epoch):
        self._epoch = epoch
        self._begun = time.monotonic()
        self._samples = 0

    def on_step(self, step):
        self._samples += step["batch"]
        now = time.monotonic()
        if not self._redraws or now - self._drawn < _REDRAW:
            return
        self._drawn = now
        rate = self._samples / max(now - self._begun, 1e-6)
        self._draw(f"{self._name()}  step {step['step'] + 1}  batch {step['batch']}  lr {step['lr']:.4g}  "
                   f"loss {step['loss']:.4f}  {_short(rate)} samples/s")

    def on_epoch(self, epoch):
        self.close()
        parts = [self._name(), f"{epoch['steps']} steps", f"train loss {epoch['train_loss']:.4f}"]
        if epoch.get("test_loss") is not None:
            parts.append(f"test loss {epoch['test_loss']:.4f}")
        if epoch.get("test_accuracy") is not None:
            parts.append(f"accuracy {100 * epoch['test_accuracy']:.2f} %")
        parts.append(f"{epoch['train_seconds']:.1f} s")
        print("  ".join(parts), file=self._out, flush=True)

    def close(self):
        """Clears the line of the step."""
        if self._width:
            self._draw("")

    def _name(self):
        return f"epoch {self._epoch['epoch'] + 1}/{self._epoch['epochs']}"

    def _draw(self, text):
        # Over all of what was there.
        print("\r" + text.ljust(self._width) + ("" if text else "\r"), end="", file=self._out, flush=True)
        self._width = len(text)
