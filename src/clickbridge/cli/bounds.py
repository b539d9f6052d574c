"""`clickbridge bounds`: what the generalisation theorems promise for a model, next to what is measured."""

from __future__ import annotations

from typing import Annotated

import typer

from clickbridge.cli.console import Json, ModelPath, Seed, print_json, print_table, progress_bar, say


def bounds(
    model: ModelPath,
    delta: Annotated[float, typer.Option(help="The bound holds with probability 1 - 2 delta.")] = 0.05,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Bound how far alignment on new queries may be from training, and measure how far it is."""
    from clickbridge.evaluate.bounds import bounds as bounds_of
    from clickbridge.models.model_folder import load

    with progress_bar() as progress:
        progress("learning again without a tenth of the queries")
        found = bounds_of(load(model), delta, seed)
    if json:
        print_json([bound.as_dict() for bound in found])
        return
    rows: list[list[object]] = [
        ["queries n^x", *(b.sample.n_x for b in found)],
        ["documents per query n^y, harmonic mean", *(b.sample.n_y for b in found)],
        ["largest response R", *(b.sample.R for b in found)],
        ["most features of a query m_x", *(b.sample.m_x for b in found)],
        ["most features of a document m_y", *(b.sample.m_y for b in found)],
        ["features d_x", *(b.sample.d_x for b in found)],
        ["features d_y", *(b.sample.d_y for b in found)],
        ["dimensions d", *(b.dim for b in found)],
        ["B", *(b.constants.B for b in found)],
        ["C", *(b.constants.C for b in found)],
        ["bound of D1 (Theorem 1)", *(b.d1 for b in found)],
        ["bound of D2 (Theorem 2)", *(b.d2 for b in found)],
        [f"bound of D, probability {1 - 2 * delta:.4g}", *(b.bound for b in found)],
        ["training alignment", *(b.training for b in found)],
        ["held-back alignment", *(b.held_back for b in found)],
        ["measured gap", *(b.gap for b in found)],
        ["largest gap over all orthonormal maps", *(b.largest_gap for b in found)],
        ["held-back queries", *(b.n_held for b in found)],
    ]
    print_table(f"{model}", ("", *(b.model for b in found)), rows)
    for b in found:
        if b.says_nothing:
            say(
                f"{b.model}: the bound says nothing here: it is {b.bound / max(b.training, 1e-300):,.3g} times the "
                f"training alignment, and would reach it with {b.queries_needed:,.3g} queries"
            )
