"""Does the reward tell good behaviour from bad? And: is there good behaviour to compare with at all?"""

from __future__ import annotations

import numpy as np

from rlnb.design.checks.finding import Finding, Severity
from rlnb.design.checks.reward.payments import WEAK_POLICIES, Payments
from rlnb.design.checks.wording import counted, listed, number
from rlnb.design.columns import Array

_WHY = "An agent that maximises this reward can only learn what the reward ranks higher."


def missing_demo(payments: Payments) -> Finding | None:
    """Returns the hint that nothing shows good behaviour, or None if something does."""
    if payments.is_good.any():
        return None
    there = listed(sorted({f'"{label}"' for label in payments.labels if label})) or "no labelled policy"
    return Finding(
        "reward.demo",
        Severity.HINT,
        f"There is no demonstration among {counted(len(payments.starts), 'recorded episode')} (by {there}).",
        "Separation, idling and looping are judged against episodes that show what is wanted.",
        "Add some: rlnb.record(env, policy, episodes=5) with a function of the observation or a trained "
        "model, or mark a policy as good.",
    )


def check_separation(payments: Payments) -> Finding:
    """Compares returns of good and of random episodes by the area under the ROC curve."""
    random = payments.labels == "random"
    if not random.any():
        random = payments.is_weak
    random = random & ~payments.is_good
    if not random.any():
        return Finding(
            "reward.separation",
            Severity.HINT,
            "There are no random episodes to compare the good ones with.",
            "Without them nobody sees whether the reward tells good behaviour from bad.",
            'Add some: rlnb.record(env, "random", episodes=20).',
        )
    good = payments.is_good
    area = auc(payments.returns[good], payments.returns[random])
    env = auc(payments.env_returns[good], payments.env_returns[random])
    severity = Severity.FINE
    advice = ""
    if area < 0.9:
        severity = Severity.PROBLEM if area < 0.5 else Severity.WARNING if area < 0.8 else Severity.HINT
        advice = _advice(payments, good, random)
    sentence = (
        f"A good episode has a higher return than {_article(payments, random)} one in {100 * area:.0f} of 100 "
        f"pairs (AUC {area:.3f}; means {number(_mean(payments.returns, good))} and "
        f"{number(_mean(payments.returns, random))}{payments.without_shaping})."
    )
    if not payments.reward.is_identity:
        better = "better" if env > area + 0.02 else "worse" if env < area - 0.02 else "as well"
        sentence += f" The environment's own return separates them {better} (AUC {env:.3f})."
    rows: tuple[int, ...] = ()
    if area < 0.9:
        # the random episode that is paid best and the good one that is paid worst
        best = np.flatnonzero(random)[np.argmax(payments.returns[random])]
        worst = np.flatnonzero(good)[np.argmin(payments.returns[good])]
        rows = (int(payments.starts[best]), int(payments.starts[worst]))
    return Finding("reward.separation", severity, sentence, _WHY, advice, value=area, rows=rows)


def auc(high: Array, low: Array) -> float:
    """Returns the share of pairs in which `high` is above `low`, ties counting half.

    It is the Mann-Whitney statistic U / (n m), the area under the ROC curve. Source: Hanley and McNeil,
    "The meaning and use of the area under a receiver operating characteristic curve", Radiology 1982.
    """
    ordered = np.sort(low)
    below = np.searchsorted(ordered, high, side="left")
    upto = np.searchsorted(ordered, high, side="right")
    return float((below + upto).sum() / (2.0 * len(high) * len(low)))


def _advice(payments: Payments, good: Array, random: Array) -> str:
    """Names the terms that pay random episodes more."""
    wrong = []
    for name in payments.result.terms:
        weight = payments.result.weight(name)
        if weight == 0.0 or name in payments.shapings:
            continue
        sums = payments.term_sums(name) * weight
        apart = _mean(sums, good) - _mean(sums, random)
        if apart < 0.0:
            wrong.append((apart, name))
    if not wrong:
        return "No term pays random episodes more; add a term for what the good episodes reach, or raise its weight."
    apart, name = min(wrong)
    weight = payments.result.weight(name)
    return (
        f"Lower the weight of {name!r} (now {number(weight)}, try {number(weight / 4)}): it pays random "
        f"episodes {number(-apart)} more than good ones."
    )


def _article(payments: Payments, random: Array) -> str:
    labels = sorted(set(payments.labels[random]))
    return "a random" if labels == ["random"] else f"a weak ({listed(labels or list(WEAK_POLICIES))})"


def _mean(values: Array, chosen: Array) -> float:
    return float(values[chosen].mean())
