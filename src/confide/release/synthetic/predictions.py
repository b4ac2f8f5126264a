"""Whether records tell one column from the others: a model trained on some of the twin's records, tried on the rest.

Both are made up, so this costs nothing and says nothing of the data beyond what the twin holds: it shows which columns
a learner could find anything out about here. The model is naive Bayes with one added to every count.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from confide.privacy.public_randomness import public_generator

if TYPE_CHECKING:
    from confide.release.synthetic.synthetic import Synthetic

MOST_RECORDS: Final = 20_000
MOST_PLACES: Final = 50
"""A column with more places is no class that anybody predicts."""
_SEED: Final = 1


@dataclass(frozen=True, slots=True)
class Prediction:
    """The share of held-out records whose place in a column is told right, beside that of the commonest place."""

    column: str
    right: float
    commonest: float


def predictions(made: "Synthetic") -> tuple[Prediction, ...]:
    """Of each column with few places, from all others."""
    sizes = made.domain.sizes
    if len(sizes) < 2:
        return ()
    places = made.model.draw(max(200, min(len(made), MOST_RECORDS)), public_generator(_SEED))
    train, test = places[::2], places[1::2]
    return tuple(
        _prediction(name, train, test, sizes, column)
        for column, name in enumerate(made.domain.names)
        if 2 <= sizes[column] <= MOST_PLACES
    )


def _prediction(
    name: str, train: NDArray[np.int64], test: NDArray[np.int64], sizes: tuple[int, ...], column: int
) -> Prediction:
    classes = sizes[column]
    known = train[:, column]
    counts = np.bincount(known, minlength=classes)
    scores = np.tile(np.log(counts + 1.0), (len(test), 1))
    for other, size in enumerate(sizes):
        if other != column:
            both = np.bincount(known * size + train[:, other], minlength=classes * size).reshape(classes, size)
            scores += np.log((both + 1.0) / (counts[:, None] + size))[:, test[:, other]].T
    right = float(np.mean(scores.argmax(axis=1) == test[:, column]))
    return Prediction(name, right, float(np.mean(test[:, column] == counts.argmax())))
