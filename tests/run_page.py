"""Run all blocks of a page in their order, in the current folder: `python -c "$(cat run_page.py)" PAGE MISSING`.

Python is run in one interpreter, as a reader would type it, and commands in a shell. A block whose first line is
the name of a file, such as `# shop.toml`, is written to that file. A block of text is what the block before it
prints; `...` stands for anything, as in doctest, and what goes to stderr (progress bars) is not compared. A
service goes on in the background, until the first line of a block says `# Ctrl-C`; it is asked at the port PORT,
or 8000. MISSING are modules, separated by commas, that the page says have to be installed and that are not
there: a block that imports one is left out, and reported.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import tomllib
from contextlib import contextmanager
from doctest import ELLIPSIS, OutputChecker
from itertools import pairwise
from pathlib import Path

page, missing = Path(sys.argv[1]), set(sys.argv[2].split(","))
names = {"__name__": "__main__"}
state = Path(os.environ["STATE"])  # what the shell exports
state.touch()
ends = []  # of pipes that services hold
SHELL = f"""
set -eu
source {state}
pip() {{ :; }}  # what it would install is there, or cannot be imported
make() {{ :; }}
git() {{ mkdir -p rlsvi; }}  # a clone
rlsvi() {{  # a service goes on in the background
    if [ "$1" = serve ]; then
        command rlsvi "$@" &
        echo $! > {state}.service
        for _ in $(seq 300); do
            curl --silent --fail --output /dev/null "http://127.0.0.1:${{PORT:-8000}}/health" && return
            sleep 0.5
        done
        return 1
    fi
    command rlsvi "$@"
}}
"""


def stop_service():
    """End the service, and wait until it has ended: then nobody has the other end of the pipe."""
    os.kill(int(Path(f"{state}.service").read_text()), signal.SIGTERM)
    os.read(ends.pop(), 1)


def run(kind, code, line):
    """Run one block, which begins at a line of the page."""
    file = re.match(r"# ([\w-]+\.(?:py|toml))\n", code)
    if file:
        Path(file[1]).write_text(code)
    elif kind == "python":
        exec(compile("\n" * (line - 1) + code, str(page), "exec"), names)
    elif kind == "bash":
        if code.startswith("# Ctrl-C"):
            stop_service()
        shell = ["bash", "-c", f"{SHELL}\n{code}\nexport -p > {state}"]
        end, other = os.pipe()
        done = subprocess.run(shell, stdin=subprocess.DEVNULL, check=False, pass_fds=(other,))
        os.close(other)
        if re.search("^rlsvi serve", code, flags=re.MULTILINE):
            ends.append(end)
        else:
            os.close(end)
        if done.returncode:
            sys.exit(f"{page}:{line}: a command ended with status {done.returncode}")
    elif kind == "toml":
        tomllib.loads(code)
    elif kind != "csv":
        sys.exit(f"{page}:{line}: a block of {kind or 'no kind'}: it must be python, bash, toml, csv or text")


@contextmanager
def must_print(expected, line):
    """Check what is printed to stdout meanwhile, by commands too; `line` is where the page says what that is."""
    sys.stdout.flush()
    stdout = os.dup(1)
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        try:
            yield
        finally:
            sys.stdout.flush()
            os.dup2(stdout, 1)
            os.close(stdout)
            file.seek(0)
            lines = [line.rstrip() for line in file]
            print(*lines, sep="\n", flush=True)
    if not OutputChecker().check_output(expected, "\n".join([*lines, ""]), ELLIPSIS):
        sys.exit(f"{page}:{line}: the page says that the block before prints\n{expected}")


def cause(error):
    """The module that could not be imported, if that is why a block failed."""
    while error is not None and not getattr(error, "name", None):
        error = error.__cause__
    return error and error.name.partition(".")[0]


text = page.read_text()
found = re.finditer(r"^```(\w*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
blocks = [(it[1], it[2], text.count("\n", 0, it.start()) + 2) for it in found]
for (kind, code, line), (following, output, below) in pairwise([*blocks, ("", "", 0)]):
    print(f"---- {page}:{line}", flush=True)
    try:
        if following == "text":
            with must_print(output, below):
                run(kind, code, line)
        elif kind != "text":
            run(kind, code, line)
    except ImportError as error:
        if cause(error) not in missing:
            raise
        print(f"LEFT OUT: line {line} of the page, without {cause(error)}", flush=True)
