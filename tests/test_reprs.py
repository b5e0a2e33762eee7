"""How agents, problems, comparisons and evaluations show themselves, as text and in a notebook."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

import rlsvi
from rlsvi.html import html_table, short
from rlsvi.mdp import FiniteMDP
from rlsvi.simulate.finite import History
from rlsvi.study.evaluation import Evaluation
from rlsvi.study.runs import COLUMNS, Run, Runs

EVIL = "<script>alert('&')</script>"


def runs(name="made up", seeds=1):
    history = History(np.array([0.0, 1.0]), np.array([1.0, 0.0]), np.array([1.0, 0.0]), None, None)
    numbers = tuple(range(seeds))
    return Runs(
        name,
        ("first", "second"),
        numbers,
        {(a, s): Run(history, 1.0) for a in ("first", "second") for s in numbers},
    )


def mdp(name="a coin"):
    return FiniteMDP.from_arrays([[[0.5, 0.5]], [[0.5, 0.5]]], [[0.0], [1.0]], horizon=3, start=[1, 0], name=name)


TEXTS = {
    "runs": (runs(), "Runs(made up, 2 episodes, 1 seed: first, second)"),
    "FiniteMDP": (mdp(), "FiniteMDP('a coin', horizon=3, states=2, actions=1, transitions=4)"),
    "problem": (
        rlsvi.problems.chain(5),
        "Problem(FiniteMDP('chain of length 5', horizon=4, states=5, actions=2, transitions=15), Tabular)",
    ),
    "evaluation": (Evaluation(np.array([1.0]), 5, 0), "Evaluation(mean return 1.00 of 1 fresh episode)"),
    "agent": (rlsvi.PSRL(), repr(rlsvi.PSRL())),
}


@pytest.mark.parametrize("name", TEXTS)
def test_text_is_short_and_html_a_table(name):
    thing, text = TEXTS[name]
    assert repr(thing) == text
    assert len(text.splitlines()) == 1
    assert ET.fromstring(thing._repr_html_()).tag == "table"


@pytest.mark.parametrize(
    "thing", [runs(EVIL), mdp(EVIL), rlsvi.Problem(mdp(EVIL))], ids=["runs", "mdp", "problem"]
)
def test_names_are_escaped(thing):
    html = thing._repr_html_()
    assert "<script" not in html
    assert EVIL in "".join(ET.fromstring(html).itertext())


def cells(html):
    """The text of each row of a table."""
    return [[cell.text for cell in row] for row in ET.fromstring(html).iter("tr")]


def test_a_table_holds_what_it_is_given():
    html = html_table("a & b", [(1, "<x>"), (None, "y")], ("n", "m"), "of < 3")
    assert cells(html) == [["n", "m"], ["1", "<x>"], ["None", "y"]]
    assert "".join(ET.fromstring(html).find("caption").itertext()) == "a & b of < 3"


def test_runs_show_their_summary():
    rows = cells(runs(seeds=2)._repr_html_())
    assert rows[0] == list(COLUMNS)
    assert rows[1] == ["first", "1.0", "1.0 to 1.0", "0.0%", "2/2", "1"]
    assert cells(runs()._repr_html_())[1][2] == "-"


def test_an_evaluation_shows_its_numbers():
    rows = dict(cells(Evaluation(np.array([1.0, 2.0]) / 3, 5, 0)._repr_html_()))
    assert rows["mean"] == "0.5"
    assert rows["max"] == "0.666667"
    assert rows["standard error"] == "0.166667"
    assert "low" not in dict(cells(Evaluation(np.array([1.0]), 5, 0)._repr_html_()))


def test_an_agent_shows_its_arguments_and_what_it_has_learned_from():
    agent = rlsvi.RLSVI(seed=3, sigma=0.5).learn(rlsvi.envs.FiniteMDPEnv(mdp()), episodes=2)
    html = agent._repr_html_()
    assert dict(cells(html))["sigma"] == "0.5"
    assert "RLSVI has learned from 2 episodes, 6 steps" in "".join(ET.fromstring(html).itertext())


def test_arrays_are_short():
    assert short(np.arange(3.0)) == "array([0., 1., 2.])"
    long = short(rlsvi.RLSVI(prior_mean=np.zeros((40, 30, 20)), basis=rlsvi.bases.Dense(np.ones((50, 2, 9)))))
    assert len(long) < 500
    assert "\n" not in long
    assert short("two  blanks\n") == repr("two  blanks\n")
