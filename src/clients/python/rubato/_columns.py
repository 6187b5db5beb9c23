"""Metrics as columns."""


class Columns(dict):
    """A dictionary of columns by name: numpy arrays of the same length."""

    @property
    def rows(self):
        """The number of rows."""
        return len(next(iter(self.values()))) if self else 0

    def to_pandas(self):
        """The same as a pandas.DataFrame. Raises ImportError if pandas is not installed."""
        import pandas

        return pandas.DataFrame(dict(self))

    def __repr__(self):
        return f"<{self.rows} rows of {', '.join(self)}>"
