"""The two kinds of figures in 11M, as SVG: a measure by dimension, and pos-com-neg bars."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from clickbridge.evaluate.similar import PairedPreference


def by_dimension(series: Mapping[str, Sequence[tuple[int, float]]], title: str) -> str:
    figure, axes = _axes(title, 3.2)
    for name, points in series.items():
        axes.plot(*zip(*points, strict=True), marker="o", markersize=3, label=name)
    axes.set(xlabel="dimensions of each latent space")
    axes.legend(frameon=False)
    return _svg(figure)


def preferences(rows: Sequence[PairedPreference], title: str) -> str:
    figure, axes = _axes(title, 1.0 + 0.32 * len(rows))
    left = [0.0] * len(rows)
    for name, colour in (("pos", "#2b7a4b"), ("com", "#c8c8c8"), ("neg", "#b5452c")):
        shares = [getattr(row, name) / max(row.pos + row.com + row.neg, 1) for row in rows]
        axes.barh([row.baseline for row in rows], shares, left=left, color=colour, label=name)
        left = [a + b for a, b in zip(left, shares, strict=True)]
    axes.invert_yaxis()
    axes.set(xlim=(0, 1), xlabel=f"share of queries, {rows[0].model} against each" if rows else "")
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return _svg(figure)


def _axes(title: str, height: float) -> tuple[Any, Any]:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, height), layout="constrained")
    axes.set_title(title, fontsize=10, loc="left")
    return figure, axes


def _svg(figure: Any) -> str:
    import matplotlib.pyplot as plt

    out = io.StringIO()
    # Without a date, so that the same figures give the same file.
    figure.savefig(out, format="svg", metadata={"Date": None})
    plt.close(figure)
    return out.getvalue()
