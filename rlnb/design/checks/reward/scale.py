"""The reward as a signal: how large it is, how often it says something, and whether it is a number at all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlnb.design.checks.finding import Finding, Severity
from rlnb.design.checks.reward.payments import Payments
from rlnb.design.checks.reward.probe import may_be_asked, value_of
from rlnb.design.checks.wording import counted, number, percent
from rlnb.design.columns import Array
from rlnb.design.measure import as_paid
from rlnb.design.term import Term
from rlnb.design.transitions import Transitions

#: root mean square per step within which common step sizes and network outputs fit well, and within which
#: they fit at all
_COMFORTABLE, _TOLERABLE = (0.02, 20.0), (1e-4, 1000.0)

#: share of rows on a clip's edge above which the clip decides more than the term
_CLIPPED = 0.2

#: share of steps that say something below which a reward counts as sparse, and as very sparse
_SPARSE, _VERY_SPARSE = 0.02, 0.01

_SCALE_WHY = (
    "Value networks, clipping ranges and default learning rates are made for rewards around 1 a step."
)
_SPARSE_WHY = "Where nothing changes the reward, an agent that explores at random has nothing to learn from."
_NUMBER_WHY = "One NaN or infinite reward ends the training: every later weight becomes NaN."


def check_scale(payments: Payments) -> Finding:
    """Measures the reward per step and per episode, and how often clips cut terms."""
    steps, returns = payments.sampled_total, payments.summed(payments.total)
    size = float(np.sqrt(np.mean(steps * steps)))
    sentence = (
        f"A step pays {number(float(steps.mean()))} on average, with a spread (standard deviation) of "
        f"{number(float(steps.std()))}; an episode {number(float(np.median(returns)))} in the median "
        f"({payments.among})."
    )
    severity, advice, names = Severity.FINE, "", []
    if size > 0.0 and not _COMFORTABLE[0] <= size <= _COMFORTABLE[1]:
        extreme = not _TOLERABLE[0] <= size <= _TOLERABLE[1]
        severity = Severity.WARNING if extreme else Severity.HINT
        factor = float(f"{1.0 / size:.0e}")
        advice = (
            f"Multiply all weights by about {number(factor)}, or train on normalised rewards (VecNormalize)."
        )
    shares = _clipped_shares(payments)
    cut = {name: share for name, share in shares.items() if share > _CLIPPED}
    if shares:
        top = max(shares, key=lambda name: shares[name])
        sentence += f" The clip of {top!r} cuts it in {percent(shares[top])} of the steps."
    if cut:
        severity = Severity.HINT if severity is Severity.FINE else severity
        names = sorted(cut, key=lambda name: -cut[name])
        clip = next(part.clip for part in payments.reward.enabled if part.name == names[0])
        assert clip is not None
        wider = _quantiles(payments, names[0])
        advice += f"{' ' if advice else ''}Widen the clip of {names[0]!r} from {list(clip)} to about {wider}."
    return Finding("reward.scale", severity, sentence, _SCALE_WHY, advice, value=size, names=tuple(names))


def check_sparse(payments: Payments) -> Finding:
    """Measures the share of steps whose reward differs from the usual one."""
    usual = float(np.median(payments.sampled_total))
    tiny = 1e-6 * max(abs(usual), float(np.abs(payments.sampled_total).max(initial=0.0)))
    differs = np.abs(payments.total - usual) > tiny
    share = float(np.count_nonzero(differs)) / len(differs)
    sentence = f"The reward differs from its usual {number(usual)} in {percent(share)} of {counted(len(differs), 'step')}."
    tried = payments.is_weak if payments.is_weak.any() else np.ones(len(payments.starts), dtype=bool)
    returns = payments.summed(payments.total)[tried]
    middle = float(np.median(returns))
    reached = float(np.mean(np.abs(returns - middle) > 1e-6 * max(abs(middle), 1e-12)))
    if share >= _SPARSE or (usual != 0.0 and reached >= 0.5):
        if share < _SPARSE:
            sentence += " How long an episode lasts makes the difference."
        return Finding("reward.sparse", Severity.FINE, sentence, _SPARSE_WHY, value=share)
    who = "weak" if payments.is_weak.any() else "recorded"
    sentence += f" {percent(reached)} of the {who} episodes have another return than the middle one."
    very = share < _VERY_SPARSE and reached < 0.1
    rows = tuple(int(row) for row in np.flatnonzero(differs)[:5])
    return Finding(
        "reward.sparse", Severity.WARNING if very else Severity.HINT, sentence, _SPARSE_WHY,
        f"Shape it: add rlnb.Shaping('progress', {_potential(payments)!r}, gamma={payments.gamma:g}), "
        "with a potential that grows towards the aim; it does not change the best policy.",
        value=share, rows=rows,
    )  # fmt: skip


def check_nonfinite(payments: Payments) -> Finding:
    """Finds NaN and infinite values, and where the first one is."""
    result = payments.result
    columns = {**result.terms, **result.groups, "total": result.total}
    bad = {name: values for name, values in columns.items() if not np.isfinite(np.add.reduce(values))}
    found = {name: ~np.isfinite(values) for name, values in bad.items()}
    found = {name: mask for name, mask in found.items() if mask.any()}
    if not found:
        return Finding(
            "reward.nonfinite", Severity.FINE,
            f"The rewards of {counted(len(payments.batch), 'step')} and all of their terms are finite.",
            _NUMBER_WHY, value=0.0,
        )  # fmt: skip
    name = next(iter(found))
    row = int(np.argmax(found[name]))
    batch = payments.batch
    episode = int(np.searchsorted(payments.starts, row, side="right")) - 1
    count = int(np.count_nonzero(found[name]))
    label = payments.labels[episode]
    by = f' by "{label}"' if label else ""
    sentence = (
        f"{name!r} is {columns[name][row]} in {counted(count, 'row')}, first in row {row:,} "
        f"(episode {batch.episode[row]}{by}, t = {batch.t[row]})."
    )
    spoilt = "total" in found
    if not spoilt:
        sentence += " The reward itself is not spoilt by it."
    return Finding(
        "reward.nonfinite", Severity.PROBLEM if spoilt else Severity.HINT, sentence, _NUMBER_WHY,
        f"Guard {name!r} where it divides or takes a root or logarithm, for example max(…, 1e-6), or give it a clip.",
        value=float(count), names=tuple(one for one in found if one in result.terms), rows=(row,),
    )  # fmt: skip


def _unclipped(payments: Payments, name: str) -> Array | None:
    """Returns a clipped term's values before the clip on the sampled rows."""
    part = next(one for one in payments.reward.enabled if one.name == name)
    if part.clip is None or not may_be_asked(part):
        return None
    whole = replace(part, clip=None, weight=1.0, group=None)
    # the function by itself, as terms are equal by its name; a clip that is dragged measures nothing anew
    key = (whole, whole.function if isinstance(whole, Term) else None)
    return payments.keep_latest(f"unclipped {name}", key, lambda: value_of(whole, _sampled(payments)))


def _sampled(payments: Payments) -> Transitions:
    return as_paid(payments.batch.slice(payments.sample))


def _clipped_shares(payments: Payments) -> dict[str, float]:
    shares = {}
    for part in payments.reward.enabled:
        values = _unclipped(payments, part.name) if part.clip is not None else None
        if values is not None and part.clip is not None:
            shares[part.name] = float(np.mean((values < part.clip[0]) | (values > part.clip[1])))
    return shares


def _quantiles(payments: Payments, name: str) -> list[float]:
    values = _unclipped(payments, name)
    assert values is not None
    low, high = np.quantile(values[np.isfinite(values)], (0.01, 0.99))
    return [float(f"{low:.2g}"), float(f"{high:.2g}")]


def _potential(payments: Payments) -> str:
    """Proposes a potential: nearness to where good episodes end, in the component they agree on best."""
    batch = payments.batch
    ends = payments.ends[payments.is_good]
    best, text = 0.5, "…"
    if not len(ends):
        return text
    for name in filter(str.isidentifier, batch.obs.names):
        last = np.asarray(batch.next_obs[name], dtype=np.float64)[ends]
        all_of_it = np.asarray(batch.obs[name][payments.sample], dtype=np.float64)
        spread = float(all_of_it.std())
        # agreement among the ends, far from where the rest of the time is spent
        if spread > 0.0 and last.std() / spread < best and abs(last.mean() - all_of_it.mean()) > spread:
            best, text = float(last.std()) / spread, f"-abs({name} - {float(f'{last.mean():.3g}'):g})"
    return text
