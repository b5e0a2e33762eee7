"""All exported bases of measured numbers, and bases that are wrong in every way a user's own may be."""

import numpy as np

from contract.cases import CODE, features
from rlsvi import bases
from rlsvi.bases import ActionFeatures, Features, FeatureTable, MeasuredBasis, StateFeatures

ARGUMENTS = {"PixelPairs": {"height": 1, "width": 2}, "HashedTiles": {"features": 64}}  # for two numbers


def measured_bases():
    """Every exported basis of measured numbers, for two of them."""
    kinds = [kind for name in bases.__all__ if isinstance(kind := getattr(bases, name), type)]
    own = [kind for kind in kinds if issubclass(kind, MeasuredBasis) and kind is not MeasuredBasis]
    return [kind(**ARGUMENTS.get(kind.__name__, {})) for kind in own]


def _edge(block, value):
    changed = block.copy()
    changed[..., -1] = value
    return changed


def _spoilt(phi, value):
    changed = phi.copy()
    changed[..., -1] = value
    return changed


# What each fault makes of the blocks (.., A) and the features (.., A, d) of `blocks` blocks.
FAULTS = {
    "block out of range": lambda block, phi, blocks: (_edge(block, blocks), phi),
    "block far out of range": lambda block, phi, blocks: (_edge(block, 2**31 - 1), phi),
    "block negative": lambda block, phi, blocks: (_edge(block, -1), phi),
    "block very negative": lambda block, phi, blocks: (_edge(block, -(10**6)), phi),
    "blocks are not whole": lambda block, phi, blocks: (block + 0.5, phi),
    "blocks are text": lambda block, phi, blocks: (block.astype("U4"), phi),
    "too few blocks": lambda block, phi, blocks: (block[..., :-1], phi),
    "too wide": lambda block, phi, blocks: (block, np.concatenate([phi, phi], axis=-1)),
    "too narrow": lambda block, phi, blocks: (block, phi[..., :-1]),
    "no features": lambda block, phi, blocks: (block, phi[..., :0]),
    "too few rows": lambda block, phi, blocks: (block, phi[..., :-1, :]),
    "one row": lambda block, phi, blocks: (block, phi[..., 0, :]),
    "not a number": lambda block, phi, blocks: (block, _spoilt(phi, np.nan)),
    "infinite": lambda block, phi, blocks: (block, _spoilt(phi, -np.inf)),
    "text": lambda block, phi, blocks: (block, phi.astype("U8")),
    "complex": lambda block, phi, blocks: (block, phi * 1j),
    "nothing": lambda block, phi, blocks: (None, None),
}
BOUND = {
    "bind returns None": lambda good: None,
    "bind returns an array": lambda good: np.ones((3, 3)),
    "no blocks at all": lambda good: good._replace(blocks=0),
    "a negative number of features": lambda good: good._replace(dim=-1),
    "a number of features that is text": lambda good: good._replace(dim="2"),
    "half a block": lambda good: good._replace(blocks=1.5),
    "more blocks than it says": lambda good: good._replace(blocks=1),
    "features that cannot be called": lambda good: good._replace(at=None, table=None),
}
TABLES = {
    "a table of too few states": lambda t: FeatureTable(t.phi[:, :-1], t.block[:-1]),
    "a table of too few actions": lambda t: FeatureTable(t.phi[:, :, :-1], t.block[:, :-1]),
    "a table of other periods": lambda t: FeatureTable(np.concatenate([t.phi, t.phi]), t.block),
    "a table without periods": lambda t: FeatureTable(t.phi[0], t.block),
    "a table of no periods": lambda t: FeatureTable(t.phi[:0], t.block),
    "a table of blocks for one state": lambda t: FeatureTable(t.phi, t.block[0]),
    "a table of other width": lambda t: FeatureTable(np.concatenate([t.phi, t.phi], axis=3), t.block),
}
HARMLESS = {
    "long block numbers": lambda block, phi, blocks: (block.astype(np.int64), phi),
    "features in another order": lambda block, phi, blocks: (block, np.asfortranarray(phi)),
}


class Switched:
    """The good basis of the cases, until `fault` names what is wrong with it."""

    def __init__(self, fault=None):
        self.fault = fault

    def bind(self, states, actions, horizon, example):
        good = CODE.bind(states, actions, horizon, example)
        if self.fault in BOUND:
            return BOUND[self.fault](good)

        def at(h, observation):
            return self._wrong(*good.at(h, observation), good.blocks)

        table = good.table
        if table is not None and self.fault in TABLES:
            table = TABLES[self.fault](table)
        elif table is not None:
            table = FeatureTable(*self._wrong(table.block, table.phi, good.blocks)[::-1])
        return Features(good.blocks, good.dim, at, table)

    def _wrong(self, block, phi, blocks):
        change = (FAULTS | HARMLESS).get(self.fault)
        return change(np.array(block), np.array(phi), blocks) if change else (block, phi)


def faults_of(case):
    """The names of the faults that matter to a case: tables are of numbered states alone."""
    return [*FAULTS, *BOUND, *(TABLES if case.kind == "table" else ())]


OTHERS = {  # bases in order, but not the one learned with
    "narrower": StateFeatures(lambda observation: [1.0]),
    "wider": StateFeatures(lambda observation: [*features(observation), 2.0, 3.0, 4.0]),
    "one block": ActionFeatures(lambda observation, action: features(observation)),
}
