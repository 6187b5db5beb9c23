"""Where progress=True shows how training goes on."""

import sys

# What takes away a line that is drawn over, and what does so in a notebook, which knows "\r" alone.
_CLEAR = "\r\x1b[2K"
_BLANKS = f"\r{79 * ' '}\r"


class Shown:
    """sys.stderr: `for_cpp` is what C++ writes to, the descriptor of its terminal, and whether a line can be drawn over."""

    def __init__(self):
        self._out = sys.stderr
        is_terminal = self._out.isatty()
        is_notebook = not is_terminal and "ipykernel" in sys.modules
        self._clear = _BLANKS if is_notebook else _CLEAR
        self._is_drawn = False
        self.for_cpp = (self._write, self._descriptor(), is_terminal or is_notebook)

    def close(self):
        """Takes away a line that an exception has left."""
        if self._is_drawn:
            self._write(_CLEAR)

    def _write(self, text):
        self._is_drawn = not text.endswith(("\n", _CLEAR))
        print(text.replace(_CLEAR, self._clear), end="", file=self._out, flush=True)

    def _descriptor(self):
        try:
            return self._out.fileno()
        except (AttributeError, OSError, ValueError):
            return -1
