"""Folders of results: judged and drawn again from their tables alone, with the very same verdicts."""

import json
import shutil

import numpy as np
import polars as pl
import pytest
from test_cli_paper import paper, small, tiny  # noqa: F401

from rlsvi_paper import folder as results
from rlsvi_paper.folder import KeptVerdicts, read_table, settle_again, write_table
from test_cli import run

NAMES = ("dithering", "chain-length")


@pytest.fixture
def made(small):  # noqa: F811
    """Two tiny figures, computed; without the store, as it is published."""
    paper(small, "-q", names=NAMES)
    shutil.rmtree(small / "store")
    return small


def entry(folder, name):
    return json.loads((folder / f"{name}.json").read_bytes())


def change(folder, name, **changes):
    (folder / f"{name}.json").write_text(json.dumps({**entry(folder, name), **changes}))


def again(folder):
    return settle_again([tiny(name) for name in NAMES], folder)


def test_a_report_judges_and_draws_what_is_missing(made):
    """All but tables and settings is deleted, and the report brings it back without computing anything."""
    before = {name: entry(made, name) for name in NAMES}
    pictures = {path.name: path.read_bytes() for path in made.iterdir() if path.suffix in (".svg", ".png")}
    assert len(pictures) == 2 * len(NAMES)
    for name in pictures:
        (made / name).unlink()
    for name in NAMES:
        change(made, name, claims=[], title="", caption="", seeds=0)
    result = run("report", made)
    assert result.exit_code == 0, result.stderr
    assert result.stderr.split("\n")[:2] == [f"judging and drawing {name}" for name in NAMES]
    assert {name: entry(made, name) for name in NAMES} == before
    for name, data in pictures.items():
        if name.endswith("svg"):
            assert (made / name).read_bytes() == data
    assert not (made / "store").exists()
    assert all(claim["measured"] for found in before.values() for claim in found["claims"])


def test_nothing_is_done_again_without_a_reason(made):
    assert again(made) == []
    (made / "dithering.png").unlink()
    assert again(made) == ["dithering"]
    assert again(made) == []
    frame = read_table(made / "chain-length.parquet")
    write_table(made / "chain-length.parquet", frame.with_columns(pl.col("time") * 2))
    was = entry(made, "chain-length")["claims"]
    assert again(made) == ["chain-length"]
    assert entry(made, "chain-length")["claims"] != was


def test_only_what_is_missing_is_done(made, monkeypatch):
    """Pictures are drawn without judging anew."""
    before = entry(made, "dithering")
    (made / "dithering.svg").unlink()
    monkeypatch.setattr(results, "settle", lambda *arguments: pytest.fail("judged"))
    assert again(made) == ["dithering"]
    assert (made / "dithering.svg").exists()
    assert entry(made, "dithering") == before


def outcomes(made, name):
    """The verdicts of an entry, without numbers, whose last bits depend on how BLAS shares the work."""
    return [(claim["words"], claim["outcome"]) for claim in entry(made, name)["claims"]]


@pytest.mark.slow
def test_several_processes_do_the_same(made, monkeypatch):
    pictures = {path: path.read_bytes() for path in made.iterdir() if path.suffix in (".svg", ".png")}
    for path in pictures:
        path.unlink()
    before = {name: outcomes(made, name) for name in NAMES}
    change(made, "dithering", claims=[])
    monkeypatch.setattr(results, "FEW_FIGURES", 0)
    figures = [tiny(name) for name in NAMES]
    assert sorted(settle_again(figures, made, workers=2)) == sorted(NAMES)
    assert {path: path.read_bytes() for path in pictures} == pictures
    assert {name: outcomes(made, name) for name in NAMES} == before
    (made / "dithering.parquet").write_bytes(b"no table")
    with pytest.warns(KeptVerdicts, match="the table of dithering cannot be judged"):
        assert settle_again(figures, made, workers=2) == []


def test_changed_claims_are_judged_again(made, monkeypatch):
    monkeypatch.setattr(results, "digest", lambda figure, folder: "other sources")
    assert again(made) == list(NAMES)
    assert again(made) == []
    assert entry(made, "dithering")["digest"] == "other sources"


def test_how_a_figure_was_made_is_kept(made):
    change(made, "dithering", made="2020-01-01T00:00:00+00:00", seconds=7.0, digest="")
    assert again(made) == ["dithering"]
    found = entry(made, "dithering")
    assert (found["made"], found["seconds"]) == ("2020-01-01T00:00:00+00:00", 7.0)


@pytest.mark.parametrize("broken", [lambda frame: frame.drop("time"), lambda frame: frame.head(0), None])
def test_a_table_that_cannot_be_judged_leaves_its_verdicts(made, broken):
    """It has not all columns, or no rows, or is no table; without verdicts there is nothing to keep."""
    path = made / "chain-length.parquet"
    if broken is None:
        path.write_bytes(b"no table")
    else:
        write_table(path, broken(read_table(path)))
    was = entry(made, "chain-length")
    with pytest.warns(KeptVerdicts, match="the table of chain-length cannot be judged"):
        assert again(made) == []
    assert entry(made, "chain-length") == was
    change(made, "chain-length", claims=[])
    with pytest.raises(ValueError, match=r"chain-length\.parquet cannot be judged"):
        again(made)


def test_figures_without_a_table_or_of_other_programs_are_left_alone(made):
    (made / "dithering.parquet").unlink()
    (made / "dithering.svg").unlink()
    (made / "chain-length.json").write_text("[1, 2]")
    was = {path.name: path.read_bytes() for path in made.iterdir() if path.is_file()}
    assert again(made) == []
    assert {path.name: path.read_bytes() for path in made.iterdir() if path.is_file()} == was


def test_a_large_table_takes_half_the_room_and_is_read_in_64_bits(tmp_path):
    rng = np.random.default_rng(0)
    rows = results.LARGE_TABLE + 1
    columns = {"seed": np.arange(rows) % 100, "regret": rng.uniform(size=rows), "time": [np.inf] * rows}
    frame = pl.DataFrame({"scale": [0.1] * rows, **columns})
    write_table(tmp_path / "large.parquet", frame, settings=["seed", "scale"])
    write_table(tmp_path / "small.parquet", frame.head(results.LARGE_TABLE))
    large, little = (read_table(tmp_path / f"{name}.parquet") for name in ("large", "small"))
    assert little.equals(frame.head(results.LARGE_TABLE))
    assert large.schema == frame.schema
    assert large["scale"].eq(0.1).all()  # settings are looked up by their values
    assert np.abs(large["regret"].to_numpy() / frame["regret"].to_numpy() - 1).max() < 2**-23
    assert large["time"].is_infinite().all()
    assert large["seed"].equals(frame["seed"])
    sizes = [(tmp_path / f"{name}.parquet").stat().st_size for name in ("large", "small")]
    assert sizes[0] < 0.7 * sizes[1]
