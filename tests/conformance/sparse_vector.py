"""The sparse vector by its definition: exact probabilities of its outputs, and variants that are not private."""

import math

import numpy as np

RARE = 1e-17


def output_probabilities(margins, threshold_scale, query_scale):
    """P(first top at place 0, 1, ...), and last P(no top), for margins one by one and geometric noise."""
    steps = np.arange(math.ceil(-math.log(RARE) * threshold_scale) + 1)
    masses = np.exp(-steps / threshold_scale) * -math.expm1(-1 / threshold_scale)
    gaps = steps[:, np.newaxis] - np.asarray(margins)[np.newaxis, :]
    tops = np.where(gaps <= 0, 1.0, np.exp(-np.maximum(gaps, 0) / query_scale))
    reached = np.cumprod(np.column_stack([np.ones(len(steps)), 1 - tops]), axis=1)
    hits = np.column_stack([reached[:, :-1] * tops, reached[:, -1]])
    return masses @ hits


def pattern_probability(margins, places, cut_off, threshold_scale, query_scale):
    """P(the tops are exactly at these places), for up to `cut_off` of them."""
    steps = np.arange(math.ceil(-math.log(RARE) * threshold_scale) + 1)
    masses = np.exp(-steps / threshold_scale) * -math.expm1(-1 / threshold_scale)
    last = places[-1] + 1 if len(places) == cut_off else len(margins)
    for place, margin in enumerate(margins[:last]):
        gaps = steps - margin
        tops = np.where(gaps <= 0, 1.0, np.exp(-np.maximum(gaps, 0) / query_scale))
        masses = masses * (tops if place in places else 1 - tops)
    return float(masses.sum())


def _laplace(generator, scale, size):
    ratio = math.exp(-1 / scale)
    return generator.geometric(1 - ratio, size) - generator.geometric(1 - ratio, size)


def _tops(margins, thresholds, noise, cut_off):
    """Which queries are tops, until the cut-off."""
    tops = margins + noise >= thresholds
    return tops & (np.cumsum(tops, axis=1) <= cut_off)


def _coded(tops, cut_off):
    """The released string of tops as a number, and how many tops it has."""
    stopped = np.cumsum(tops, axis=1) - tops >= cut_off
    codes = np.where(stopped, 2, tops)
    return np.column_stack([codes @ 3 ** np.arange(tops.shape[1]), tops.sum(axis=1)]).astype(np.int64)


def no_query_noise(margins, epsilon, tops, runs, generator):
    thresholds = _laplace(generator, 2 / epsilon, (runs, 1))
    return _coded(_tops(margins, thresholds, 0, tops), tops)


def no_threshold_noise(margins, epsilon, tops, runs, generator):
    noise = _laplace(generator, 2 * tops / epsilon, (runs, len(margins)))
    return _coded(_tops(margins, 0, noise, tops), tops)


def noise_not_scaled_by_tops(margins, epsilon, tops, runs, generator):
    thresholds = _laplace(generator, 4 / epsilon, (runs, 1))
    noise = _laplace(generator, 4 / (3 * epsilon), (runs, len(margins)))
    return _coded(_tops(margins, thresholds, noise, tops), tops)


def no_cut_off(margins, epsilon, tops, runs, generator):
    thresholds = _laplace(generator, 2 / epsilon, (runs, 1))
    noise = _laplace(generator, 2 / epsilon, (runs, len(margins)))
    return _coded(_tops(margins, thresholds, noise, len(margins)), len(margins))


def noise_reused_in_the_answer(margins, epsilon, tops, runs, generator):
    thresholds = _laplace(generator, 2 / epsilon, (runs, 1))
    noise = _laplace(generator, 4 / epsilon, (runs, len(margins)))
    found = _tops(margins, thresholds, noise, 1)
    answers = np.where(found.any(axis=1), (margins + noise)[np.arange(runs), found.argmax(axis=1)], 99)
    return np.column_stack([np.where(found.any(axis=1), found.argmax(axis=1), -1) * 1000 + answers])


def monotone_noise(margins, epsilon, tops, runs, generator):
    thresholds = generator.geometric(-math.expm1(-epsilon / 2), (runs, 1)) - 1
    noise = generator.geometric(-math.expm1(-epsilon / (2 * tops)), (runs, len(margins))) - 1
    return _coded(_tops(margins, thresholds, noise, tops), tops)


def noise_on_the_wrong_side(margins, epsilon, tops, runs, generator):
    thresholds = 1 - generator.geometric(-math.expm1(-epsilon / 2), (runs, 1))
    noise = 1 - generator.geometric(-math.expm1(-epsilon / (4 * tops)), (runs, len(margins)))
    return _coded(_tops(margins, thresholds, noise, tops), tops)


BROKEN = {
    # name: variant, ε, tops, and the margins on two neighbours that hurt it
    "no query noise": (no_query_noise, 1.0, 1, [0, 1], [1, 0]),
    "no threshold noise": (no_threshold_noise, 1.0, 1, [0] * 12, [1] * 12),
    "noise not scaled by the number of tops": (noise_not_scaled_by_tops, 2.0, 4, [-1] * 4 + [1] * 4, [0] * 8),
    "no cut-off": (no_cut_off, 2.0, 1, [-1] * 6 + [1] * 6, [0] * 12),
    "noise reused in the answer": (noise_reused_in_the_answer, 3.0, 1, [0] * 5 + [1], [1] * 5 + [0]),
    "monotone noise for queries that move both ways": (monotone_noise, 2.0, 1, [0] * 4 + [2], [1] * 5),
    "noise on the wrong side": (noise_on_the_wrong_side, 1.0, 1, [0] * 12, [1] * 12),
}


def redrawn_log_ratio(epsilon, tops, threshold_scale, waiting=32):
    """ln P(D)/P(D') for a threshold that is drawn anew after each top; exact, for the event is rare.

    Each of the `tops` rounds has `waiting` queries that are no tops, 0 on D and 1 on D', and then a top, 1 and 0.
    """
    reach = 600
    steps = np.arange(-reach, reach + 1)

    def masses(scale):
        return np.exp(-np.abs(steps) / scale) * math.tanh(0.5 / scale)

    below = np.concatenate([[0.0], np.cumsum(masses(4 * tops / epsilon))])  # P(noise < step)

    def one_round(idle, active):
        misses = below[np.clip(steps - idle + reach, 0, 2 * reach)] ** waiting
        return float(masses(threshold_scale) @ (misses * (1 - below[np.clip(steps - active + reach, 0, 2 * reach)])))

    return tops * math.log(one_round(0, 1) / one_round(1, 0))
