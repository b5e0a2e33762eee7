"""Bad logs: an error that names the column and the row, and an agent that is as it was."""

import numpy as np
import polars as pl
import pytest
from gymnasium.spaces import Box, Discrete, Text

import rlsvi
from contract.environments import drifting, numbered
from contract.state import assert_equal, everything


@pytest.fixture(scope="module")
def table():
    return rlsvi.record(numbered(), None, 12, seed=4)


@pytest.fixture(scope="module")
def vectors():
    return rlsvi.record(drifting(), None, 12, seed=4)


def at(log, row, **values):
    """The log with other values in one row."""
    for name, value in values.items():
        given = log[name].to_list()
        given[row] = value
        log = log.with_columns(pl.Series(name, given, dtype=log[name].dtype))
    return log


def refuses(log, match, tmp_path, env=numbered, make=lambda: rlsvi.RLSVI(seed=1), error=ValueError, **options):
    """Whether it has learned before or not, an agent is as it was."""
    for agent in (make(), make().learn(env(), episodes=3)):
        before, streams = everything(agent, tmp_path), agent._streams.copy()
        with pytest.raises(error, match=match):
            agent.fit(log, env(), **options)
        assert_equal(everything(agent, tmp_path), before)
        assert np.array_equal(agent._streams, streams)
        agent.learn(env(), episodes=1)


def bounded():
    return rlsvi.BoundedRLSVI(seed=1, basis=rlsvi.bases.Polynomial(degree=1))


COLUMNS = ["episode", "step", "observation", "action", "reward", "next_observation", "terminated", "truncated"]


@pytest.mark.parametrize("column", COLUMNS)
def test_a_column_is_missing_or_has_a_gap_or_another_type(table, column, tmp_path):
    if column != "truncated":
        refuses(table.drop(column), f"no column '{column}', it has", tmp_path)
    ending = int(np.flatnonzero(~table["terminated"].to_numpy())[3])
    refuses(at(table, ending, **{column: None}), f"column '{column}', row {ending}: there is no value", tmp_path)
    wrong = table.with_columns(pl.lit(0.5 if column == "episode" else "high").alias(column))
    refuses(wrong, f"column '{column}': it holds (Float64, not whole numbers|String, not)", tmp_path)


def test_numbers_that_cannot_be(table, vectors, tmp_path):
    refuses(at(table, 7, reward=np.nan), "column 'reward', row 7: NaN", tmp_path)
    refuses(at(table, 7, reward=np.inf), "column 'reward', row 7: NaN, infinity", tmp_path)
    refuses(at(table, 5, action=3), "column 'action', row 5: actions are 0 to 2", tmp_path)
    refuses(at(table, 5, action=-1), "column 'action', row 5: actions are 0 to 2", tmp_path)
    refuses(at(table, 5, observation=4), "column 'observation', row 5: states are 0 to 3", tmp_path)
    refuses(
        at(vectors, 4, observation=[np.nan, 0.0]), "column 'observation', row 4: NaN", tmp_path, drifting, bounded
    )
    lists = vectors.with_columns(pl.col("observation").arr.to_list())
    for numbers in ([0.5], [1.0, 2.0, 3.0], []):
        match = "column 'observation', row 4: there must be 2 numbers"
        refuses(at(lists, 4, observation=numbers), match, tmp_path, drifting, bounded)
    gap = at(lists, 4, observation=[0.5, None])
    refuses(gap, "column 'observation', row 4: a number is missing", tmp_path, drifting, bounded)
    flags = table.with_columns(pl.col("terminated").cast(pl.Int8))
    refuses(at(flags, 3, terminated=2), "column 'terminated', row 3: neither True nor False", tmp_path)


def test_a_numbered_column_is_missing(vectors, tmp_path):
    wide = vectors.with_columns(
        pl.col("observation").arr.get(k).alias(f"observation_{i}") for i, k in ((0, 0), (2, 1))
    )
    for env in (drifting, lambda: None):
        agent = bounded()
        with pytest.raises(ValueError, match="no column 'observation_1', but it has observation_2"):
            agent.fit(wide.drop("observation"), env())
    three = wide.drop("observation").with_columns(observation_1=pl.lit(0.0))
    refuses(three, r"3 columns for observation .* there must be 2 numbers", tmp_path, drifting, bounded)


def test_pictures_whose_rows_differ(tmp_path):
    pictures = pl.Series([[[1, 2], [3, 4]], [[1, 2, 3], [4]], [[1, 2], [3, 4]]])
    columns = {"episode": [0, 1, 2], "step": 0, "action": 0, "reward": 0.0, "terminated": True, "truncated": False}
    log = pl.DataFrame({"observation": pictures, "next_observation": pictures}).with_columns(
        pl.Series(name, value if isinstance(value, list) else [value] * 3) for name, value in columns.items()
    )
    env = rlsvi.envs.Spaces(Box(0, 255, (2, 2), np.uint8), Discrete(2))
    with pytest.raises(ValueError, match="column 'observation', row 1: there must be 4 numbers"):
        rlsvi.agent_for(env).fit(log, env)
    assert rlsvi.agent_for(env).fit(log.filter(pl.col("episode") != 1), env).steps == 2


def test_masks_and_propensities(table, tmp_path):
    masks = table["mask"].to_list()
    action = table["action"][6]
    masks[6][action] = False
    barred = at(table, 6, mask=masks[6])
    refuses(barred, "column 'action', row 6: the mask does not allow this action", tmp_path)
    refuses(at(table, 6, mask=[False] * 3), "column 'mask', row 6: the mask allows no action", tmp_path)
    refuses(at(table, 6, mask=[True] * 2), "column 'mask', row 6: there must be 3 numbers", tmp_path)
    refuses(at(table, 6, propensity=0.0), r"column 'propensity', row 6: it must lie in \(0, 1\]", tmp_path)
    partly = at(at(table, 2, propensity=None), 6, propensity=2.0)
    refuses(partly, r"column 'propensity', row 6: it must lie in \(0, 1\]", tmp_path)


def test_episodes_with_gaps_or_out_of_order(table, vectors, tmp_path):
    second = next(i for i in range(table.height) if table["step"][i] == 2)  # of three steps
    gap = table.filter(pl.Series(np.arange(table.height) != second - 1))
    refuses(gap, f"column 'step', row {second - 1}: step 1 of episode .* is missing", tmp_path)
    twice = pl.concat([table, table[second : second + 1]])
    refuses(twice, f"column 'step', row .*{second}|{table.height}.*is there twice", tmp_path)
    refuses(at(table, second, step=-1), f"column 'step', row {second}: steps count from 0", tmp_path)
    over = at(table, second - 1, terminated=True)
    refuses(over, f"column 'step', row {second}: it comes after the end of its episode", tmp_path)
    swapped = at(vectors, 0, step=1)
    swapped = at(swapped, 1, step=0)
    assert vectors["step"][1] == 1
    refuses(swapped, "column 'next_observation', row .: it is not the observation", tmp_path, drifting, bounded)


def test_files_that_are_cut_and_logs_that_are_empty(table, tmp_path):
    table.write_parquet(tmp_path / "log.parquet")
    data = (tmp_path / "log.parquet").read_bytes()
    for size in (0, 3, len(data) // 2, len(data) - 1):
        (tmp_path / "cut.parquet").write_bytes(data[:size])
        refuses(tmp_path / "cut.parquet", "cut.parquet cannot be read, is it a whole Parquet file", tmp_path)
    refuses(tmp_path, "cut.parquet cannot be read, is it a whole Parquet file", tmp_path)
    refuses(pl.scan_parquet(tmp_path / "cut.parquet"), "the log cannot be read, is it a whole Parquet", tmp_path)
    refuses(tmp_path / "none.parquet", "there is no log", tmp_path, error=FileNotFoundError)
    (tmp_path / "folder").mkdir()
    refuses(tmp_path / "folder", "no Parquet or CSV file in the folder", tmp_path, error=FileNotFoundError)
    refuses(table[:0], "the log is empty: it has no rows", tmp_path)
    refuses(iter([]), "the log is empty: it has no pieces", tmp_path)
    refuses(pl.DataFrame(), "no columns 'episode', 'step', .* it has none", tmp_path)


def test_csv_files_that_are_wrong(table, tmp_path):
    flat, path = table.drop("mask", "next_mask", strict=False), tmp_path / "log.csv"
    path.write_text("episode,step\n1,2,3\n")
    refuses(path, "log.csv cannot be read, is it a whole CSV file", tmp_path)
    path.write_text("")
    refuses(path, "log.csv cannot be read, is it a whole CSV file", tmp_path)
    at(flat, 3, reward=np.nan).write_csv(path)
    refuses(path, "column 'reward', row 3: NaN", tmp_path)
    flat.with_columns(pl.format("{}x", "action").alias("action")).write_csv(path)
    refuses(path, "column 'action': it holds String", tmp_path)


@pytest.mark.parametrize("cell", ["[0.5, 1]", "[0.5 1.]", "(1, -2e-3)"])
@pytest.mark.parametrize("env", [drifting, None])
def test_lists_that_are_text_are_refused_and_not_taken_for_words(tmp_path, cell, env):
    pair = pl.lit(cell).alias("observation"), pl.lit(cell).alias("next_observation")
    log = rlsvi.record(drifting(), None, 2, seed=4).with_columns(pair).drop("mask", "next_mask", strict=False)
    log.write_csv(tmp_path / "log.csv")
    with pytest.raises(ValueError, match=r"'observation'.*: give each number a column of its own, observation_0"):
        rlsvi.BoundedRLSVI(seed=1).fit(tmp_path / "log.csv", env and env())


def test_a_log_is_not_recorded_as_csv(tmp_path):
    with pytest.raises(ValueError, match="path must be a Parquet file"):
        rlsvi.record(drifting(), None, 2, path=tmp_path / "log.csv")
    assert not list(tmp_path.iterdir())


def test_the_file_and_the_row_in_it_are_named(table, tmp_path):
    folder = tmp_path / "log"
    (folder / "more").mkdir(parents=True)
    wrong = at(table, 9, reward=np.nan)
    wrong[:7].write_parquet(folder / "a.parquet")
    wrong[7:].write_parquet(folder / "more" / "b.parquet")
    refuses(folder, r"column 'reward', row 2 of more/b\.parquet: NaN", tmp_path)
    refuses([wrong[7:], wrong[:7]], "column 'reward', row 2 of piece 0: NaN", tmp_path)
    refuses([wrong[:4], wrong[:0], folder], "column 'step', row .* of (piece 0|a.parquet): .*twice", tmp_path)


def test_pieces_without_rows_are_left_out(table, tmp_path):
    agent = rlsvi.RLSVI(seed=1).fit([pl.DataFrame(), table[:5], table[:0].drop("mask"), table[5:]], numbered())
    assert agent.steps == table.height
    refuses([table[:0], table[:0]], "the log is empty: it has no rows", tmp_path)


def test_numbers_of_a_log_alone_are_bounded(table, vectors):
    cases = [
        (at(table, 5, action=10**12), "column 'action', row 5: without an environment, actions are numbered 0 to"),
        (at(table, 5, observation=10**12), "column 'observation', row 5: without an environment, states are"),
        (at(vectors, 5, action=10**9), "column 'action', row 5: without an environment, actions"),
    ]
    for log, match in cases:
        with pytest.raises(ValueError, match=match):
            rlsvi.PSRL(seed=1, horizon=3).fit(log)


def test_texts_that_are_too_long():
    log = pl.DataFrame({"episode": [0, 1], "step": [0, 0], "observation": ["ab", "abcd"], "action": [0, 1]})
    ended = {"reward": 1.0, "next_observation": "abcdef", "terminated": True, "truncated": False}
    log = log.with_columns(pl.lit(value).alias(name) for name, value in ended.items())
    env = rlsvi.envs.Spaces(Text(3), Discrete(2))
    with pytest.raises(ValueError, match="column 'observation', row 1: texts have at most 3 characters"):
        rlsvi.agent_for(env).fit(log, env)
    assert rlsvi.agent_for(env).fit(log[:1], env).steps == 1


@pytest.mark.slow
def test_tables_of_pandas_with_cells_of_several_types(table, vectors, tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    log = pandas.DataFrame(table.drop("mask", "next_mask").to_dict(as_series=False))
    log["action"] = [*log["action"][:5], "left", *log["action"][6:]]
    refuses(log, "column 'action', row 5: it holds str, and row 0 holds int", tmp_path)
    refuses([table[:0], log], "column 'action', row 5 of piece 1: it holds str", tmp_path)
    ragged = pandas.DataFrame(vectors.drop("mask", "next_mask").to_dict(as_series=False))
    ragged["observation"] = [np.ones(3 if i == 4 else 2) for i in range(len(ragged))]
    refuses(ragged, "column 'observation', row 4", tmp_path, drifting, bounded)


def test_arguments(table, tmp_path):
    refuses(table, "must be the name of a column, or a list", tmp_path, columns={"reward": 3}, error=TypeError)
    refuses(table, "columns must be a dictionary, such as", tmp_path, columns=["a"], error=TypeError)
    refuses(table, "columns has 'rewards': did you mean reward", tmp_path, columns={"rewards": "r"})
    refuses(table, "no column 'r', it has", tmp_path, columns={"reward": "r"})
    refuses(17, "log must be a polars frame, .* got int", tmp_path, error=TypeError)
    refuses([table, table.drop("reward")], "piece 1 of the log has the columns", tmp_path)
    mixed = [table, table.with_columns(pl.col("episode") + 100, reward=pl.lit("high"))]
    refuses(mixed, "different types|holds String, not numbers", tmp_path)
    with pytest.raises(TypeError, match="env must be a Gymnasium environment"):
        rlsvi.RLSVI().fit(table, "CartPole-v1")
    with pytest.raises(ValueError, match=r"3 steps, but this is a task of 2 periods \(the first row beyond"):
        rlsvi.RLSVI(horizon=2).fit(table, numbered())


def test_what_only_a_learner_finds_out_leaves_the_agent_as_it_was(table, tmp_path):
    """The masks of a state differ, or rewards do not suit the agent, in the middle of the log."""
    row = table.filter(pl.col("step") == 0)["episode"].max()
    last = int(table.with_row_index().filter((pl.col("episode") == row) & (pl.col("step") == 0))["index"][0])
    mask = np.zeros(3, bool)
    mask[table["action"][last]] = True
    refuses(at(table, last, mask=mask.tolist()), "the action mask of state .* has changed", tmp_path)
    thompson = lambda: rlsvi.ThompsonSampling(seed=1)  # noqa: E731
    refuses(at(table, last, reward=7.0), r"needs rewards in \[0, 1\]", tmp_path, make=thompson)


# ---- columns ----------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:importance sampling rests on")
def test_truncated_is_optional(table, vectors):
    """An episode that just stops counts as truncated."""
    short = table.filter(pl.col("step") < 2)
    for log, env, make in (
        (table, numbered, lambda: rlsvi.RLSVI(seed=1)),
        (short, numbered, lambda: rlsvi.RLSVI(seed=1)),
        (vectors, drifting, bounded),
    ):
        whole, without = (make().fit(each, env()) for each in (log, log.drop("truncated")))
        assert (whole.episodes, whole.steps) == (without.episodes, without.steps)
        assert rlsvi.record(env(), whole, 5).equals(rlsvi.record(env(), without, 5))
        judged = [
            rlsvi.value_of(lambda o: 1, each, env(), horizon=2, draws=50) for each in (log, log.drop("truncated"))
        ]
        assert judged[0] == judged[1]
    chunks = [bounded().fit(each, drifting(), chunk=5) for each in (vectors, vectors.drop("truncated"))]
    assert rlsvi.record(drifting(), chunks[0], 5).equals(rlsvi.record(drifting(), chunks[1], 5))


def test_all_columns_that_are_missing_are_named_at_once(table, vectors, tmp_path):
    bare = table.drop("reward", "terminated")
    match = r"no columns 'reward', 'terminated', it has .*columns=\{'reward': .., 'terminated': ..\}"
    refuses(bare, match, tmp_path)
    refuses(table, "no columns 'points', 'p'", tmp_path, columns={"reward": "points", "propensity": "p"})
    with pytest.raises(ValueError, match="no columns 'step', 'action'"):
        bounded().fit(vectors.drop("step", "action"), drifting(), chunk=5)


@pytest.mark.parametrize("chance", [-1.0, 0.0, 1.5, np.nan])
def test_propensities_are_checked_in_chunks_too(vectors, chance, tmp_path):
    wrong = at(vectors, 13, propensity=chance)
    match = r"column 'propensity', row 13: it must lie in \(0, 1\]"
    refuses(wrong, match, tmp_path, drifting, bounded)
    with pytest.raises(ValueError, match=match):
        bounded().fit(wrong, drifting(), chunk=5)
    assert bounded().fit(at(vectors, 13, propensity=None), drifting(), chunk=5).steps == vectors.height


def test_columns_of_types_that_are_not_expected(table):
    """Errors are ours, not those of Polars."""
    for name in ("observation", "next_observation"):
        for other in ([[1, 2]], ["a"], [0.5], [{"a": 1}]):
            wrong = table.with_columns(pl.Series(name, other * table.height))
            with pytest.raises(ValueError, match=r"column '(next_)?observation'"):
                rlsvi.value_of(lambda s: 0, wrong, horizon=3, draws=50)
    for name in ("step", "action", "reward", "terminated", "propensity", "observation"):
        wide = table.with_columns(pl.lit(1).cast(pl.Int128).alias(name))
        with pytest.raises(ValueError, match=f"column '{name}': it holds Int128, cast it to Int64"):
            rlsvi.RLSVI(seed=1).fit(wide, numbered())
    with pytest.raises(ValueError, match="must not have a column called 'row in the log': rename it"):
        rlsvi.RLSVI(seed=1).fit(table.with_columns(pl.lit(1).alias("row in the log")), numbered())
