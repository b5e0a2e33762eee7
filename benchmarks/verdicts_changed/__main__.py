"""Write the page of verdicts that changed since version 0.1.0.

    python -m benchmarks.verdicts_changed results docs/verdicts-changed.md

Verdicts that changed without a reason in reasons.toml are printed, and the exit code is 1.
"""

import argparse
from pathlib import Path

from benchmarks.verdicts_changed import changes, page
from rlsvi.paper import FIGURES
from rlsvi.paper.report.records import read_figures


def main() -> int:
    """Write the page, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="a folder that `rlsvi paper` has written")
    parser.add_argument("page", type=Path)
    options = parser.parse_args()
    figures = [it for it in read_figures(options.results, list(FIGURES)) if it.name in FIGURES]
    options.page.write_text(page(figures), "utf-8")
    missing = [it for it in changes(figures) if it.changed and not it.why]
    for it in missing:
        print(f"no reason: {it.figure}.{it.name}, {', '.join(it.before)}, now {it.now.outcome}: {it.now.words}")
    return 1 if missing else 0


if __name__ == "__main__":
    raise SystemExit(main())
