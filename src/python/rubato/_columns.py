"""Metrics as columns."""


class Columns(dict):
    """A dictionary of numpy arrays of one length, by name: a column each."""

    @property
    def rows(self):
        """How many rows there are."""
        return len(next(iter(self.values()))) if self else 0

    def to_pandas(self):
        """The same as a pandas.DataFrame. Raises ImportError where there is no pandas."""
        import pandas

        return pandas.DataFrame(dict(self))

    def __repr__(self):
        return f"<{self.rows} rows of {', '.join(self)}>"
