"""docs/images/make makes each picture of the documentation but those of the findings, and the documentation shows each.

pictures_test.py SOURCE RUBATO
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

SVG = "{http://www.w3.org/2000/svg}"


def require(holds, what):
    if not holds:
        sys.exit(f"pictures_test: {what}")


def check_view(file):
    view = xml.fromstring(file.read_text(encoding="utf-8").replace("\u00a0", " "))
    lines = {f"#{group.get('id')}": "".join(group.itertext()) for group in view.find(f"{SVG}defs")}
    frames = [group for group in view.findall(f"{SVG}g") if group.get("id", "").startswith("f")]
    require(len(frames) >= 2, f"the recording has {len(frames)} frames")
    for start in "$ rubato train", "epoch 1/2", "test accuracy":
        require(any(line.startswith(start) for line in lines.values()), f"no line of the recording begins with {start!r}")
    last = [lines[use.get("href")] for use in frames[-1]]
    require(any(line.startswith("run folder") for line in last), f"the recording ends with {last}")


def check_plot(file):
    plot = xml.parse(file).getroot()
    names = {title.text for title in plot.iter(f"{SVG}title")}
    require({"linear", "root", "constant"} <= names, f"the plot has curves of {names}")


def main():
    try:
        import pyte  # noqa: F401
    except ModuleNotFoundError:
        print("Debian's python3-pyte is not there")
        sys.exit(77)
    source, rubato = pathlib.Path(sys.argv[1]), sys.argv[2]
    images = source / "docs" / "images"
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        made = subprocess.run([sys.executable, images / "make", "--quick", "--rubato", rubato, "--out", out],
                              check=True, stderr=subprocess.PIPE, text=True)
        check_view(out / "view.svg")
        check_plot(out / "plot.svg")
        if not (out / "page.png").exists():
            require("no chromium" in made.stderr, "page.png was not made")
            (out / "page.png").touch()
        there = {str(file.relative_to(images)) for file in images.rglob("*") if file.suffix in (".svg", ".png")}
        of_make = {name for name in there if not name.startswith("findings/")}
        require(of_make == {file.name for file in out.iterdir()}, f"in docs/images are {of_make}")
    shown = set()
    for page in [source / "README.md", *(source / "docs").glob("*.md")]:
        shown |= set(re.findall(r"\]\((?:docs/)?images/([\w./-]+)\)", page.read_text(encoding="utf-8")))
    require(shown == there, f"the pages show {shown}, and docs/images has {there}")


if __name__ == "__main__":
    main()
