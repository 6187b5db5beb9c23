"""What docs/python.md and the README say of Python does what they say."""

import linecache
import os
import re
import unittest

import rubato
from support import SOURCE, TestCase


def blocks(page, language="python"):
    return re.findall(rf"^```{language}\n(.*?)^```$", (SOURCE / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


class Pages(TestCase):
    def setUp(self):
        # What they write lies here.
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder())

    def test_python_md(self):
        found = blocks("docs/python.md")
        self.assertGreaterEqual(len(found), 5)
        scope = {"__name__": "python_md"}
        for block in found:
            # TorchScript looks up the source of what is in it.
            name = f"docs/python.md, block {len(linecache.cache)}"
            linecache.cache[name] = len(block), None, block.splitlines(keepends=True), name
            exec(compile(block, name, "exec"), scope)
        self.assertGreater(scope["result"].test_accuracy, 0)

    def test_readme(self):
        found = blocks("README.md")
        self.assertTrue(found)
        for block in found:
            exec(compile(block, "README.md", "exec"), {})


if __name__ == "__main__":
    unittest.main()
