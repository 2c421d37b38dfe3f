# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How right the cost model is about layers that nobody has chosen, against bars."""

import collections
import statistics

from report import geomean, table

# Median error, the part of all errors within a bound, and how much longer than the
# best measured schedule of its layer the chosen one takes.
MOST_MEDIAN = 0.10
WITHIN, LEAST_WITHIN = 0.30, 0.95
MOST_LOSS, MOST_LOSS_OF_95 = 1.05, 1.15
# A product that is slower than the dense library by this must be called so.
SLOWER = 1.05


def share_of(values, part):
    """The value that `part` of `values` do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


class Verdicts:
    """Whether dense is called faster, of what is chosen."""

    def __init__(self, chosen, costs, caution):
        known = [s for s in chosen if "cublas_us" in s.run]
        ratio = {id(s): s.us / s.run["cublas_us"] for s in known}
        self.slow = [s for s in known if ratio[id(s)] > SLOWER]
        self.fast = [s for s in known if ratio[id(s)] < 1 / SLOWER]
        warned = {id(s) for s in known if s.predict(costs) > caution * s.dense_us}
        self.missed = [s for s in self.slow if id(s) not in warned]
        self.alarms = [s for s in self.fast if id(s) in warned]


def groups(samples):
    """Samples by what they are of, all of them first."""
    found = collections.defaultdict(list)
    for sample in samples:
        layer, tokens = sample.layer, sample.layer.shape[0]
        before = sample.run.get("before") or "as it is"
        sizes = ((8, "1 to 7"), (64, "8 to 63"), (512, "64 to 511"))
        size = next((text for most, text in sizes if tokens < most), "512 and more")
        for key in (
            ("all", ""),
            ("family", sample.family),
            ("layout", f"{layer.layout}, {before}"),
            ("tokens", size),
            ("result", layer.epilogue),
            ("type", layer.type),
            ("block length", layer.length),
        ):
            found[key].append(sample)
    order = ["all", "family", "layout", "tokens", "result", "type", "block length"]
    return sorted(found.items(), key=lambda item: (order.index(item[0][0]), item[0][1]))


def summarize(samples, costs):
    errors = [sample.predict(costs) / sample.us - 1 for sample in samples]
    sizes = [abs(error) for error in errors]
    return {
        "median": statistics.median(sizes),
        "bias": statistics.median(errors),
        "95": share_of(sizes, 0.95),
        "within": sum(size <= WITHIN for size in sizes) / len(sizes),
    }


def judge(samples, costs, picks, caution):
    """A table, and the bars that are missed, in words. `picks` are (loss, layer,
    chosen, best) of each layer."""
    rows = []
    for (kind, name), members in groups(samples):
        found = summarize(members, costs)
        rows.append(
            [f"{kind} {name}".strip(), len(members), f"{100 * found['median']:.1f} %"]
            + [f"{100 * found['bias']:+.1f} %", f"{100 * found['95']:.0f} %"]
            + [f"{100 * found['within']:.1f} %"]
        )
    header = ["layers", "runs", "median error", "bias", "95 % within", "within 30 %"]
    found = summarize(samples, costs)
    losses = [pick[0] for pick in picks] or [1.0]
    verdicts = Verdicts([chosen for _, _, chosen, _ in picks], costs, caution)
    bars = [
        ("median error", found["median"], MOST_MEDIAN),
        ("part of errors beyond 30 %", 1 - found["within"], 1 - LEAST_WITHIN),
        ("choice / best, geomean", geomean(losses), MOST_LOSS),
        ("choice / best, 95 %", share_of(losses, 0.95), MOST_LOSS_OF_95),
        ("slower than dense, not said", len(verdicts.missed), 0),
    ]
    text = (
        table(header, rows)
        + "\n\n"
        + table(
            ["bar", "found", "at most"],
            [[name, f"{value:.3f}", f"{most:.3f}"] for name, value, most in bars],
        )
    )
    text += (
        f"\n\nchosen: {len(verdicts.slow)} of {len(picks)} slower than dense, "
        f"{len(verdicts.missed)} of them not called so; {len(verdicts.fast)} faster, "
        f"{len(verdicts.alarms)} of them called slower\n"
    )
    for sample in verdicts.missed:
        text += (
            f"\nnot said: {sample.layer.name}: {sample.us:.1f} us, predicted "
            f"{sample.predict(costs):.1f}; dense {sample.run['cublas_us']:.1f}, "
            f"predicted {sample.dense_us:.1f}"
        )
    missed = [f"{n}: {v:.3f} > {most:.3f}" for n, v, most in bars if v > most + 1e-9]
    return text, missed
