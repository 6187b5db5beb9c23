"""Plots on matplotlib's axes, and what is a notebook."""

import sys


def is_notebook(out):
    """True if `out` is the output of a notebook's cell: this process is a kernel of Jupyter, and `out` is no terminal."""
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)
    return "ipykernel" in sys.modules and hasattr(get_ipython(), "kernel") and not out.isatty()


def axes_or_new(axes):
    """Axes to draw on. Raises ImportError if matplotlib is not installed."""
    if axes is not None:
        return axes
    from matplotlib import pyplot

    return pyplot.subplots()[1]


def columns_of_numbers(columns):
    """The names of the columns that a plot can have."""
    return [name for name, values in columns.items() if values.dtype.kind in "iuf"]


def plot_column(records, over, column, axes):
    """Draws a column against the step or the epoch that `over` names, which count from 1 as on pages."""
    axes = axes_or_new(axes)
    axes.plot(records[over] + 1, records[column], marker="." if records.rows < 30 else None)
    axes.set(xlabel=over, ylabel=column.replace("_", " "))
    return axes


def plot_sizes(at, sizes, axes, **labels):
    """Draws sizes from 0 on, each of which holds until the next."""
    axes = axes_or_new(axes)
    axes.step(at, sizes, where="post")
    axes.set(**labels)
    axes.set_ylim(bottom=0)
    return axes


def plot_intervals(answer, axes):
    """Draws the mean of each choice with its 95 % interval, the first at the top."""
    axes = axes_or_new(axes)
    cells = [cell for cell in answer["cells"] if cell["value"]]
    for row, cell in enumerate(cells):
        axes.errorbar(cell["value"]["mean"], row, xerr=cell["value"]["half_width"] or 0, fmt="o", capsize=4,
                      color="black" if cell["baseline"] else None)
    axes.set_yticks(range(len(cells)), [_label(cell, answer["axes"]) for cell in cells])
    axes.set_ylim(len(cells) - 0.5, -0.5)
    axes.set(xlabel=answer["measure"])
    return axes


def _label(cell, names):
    # The condition has the values of some options already.
    values = [cell[name] for name in names if name != "seed" and f"{name} {cell[name]}" not in cell["condition"]]
    return ", ".join([cell["condition"], *values]) + (" (baseline)" if cell["baseline"] else "")
