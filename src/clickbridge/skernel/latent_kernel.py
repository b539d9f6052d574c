"""The latent part of k_Q: the cosine of query images under a PLS map (Wu et al. 2011, eq. 7 allows any kernel).

A dot product of unit images is positive semi-definite. A new query has an image by its words, so it can have neighbours
that share no word with it but led to clicks on the same documents. The map learns from clicks, so it must use the part
of the log that gives no preferences. A latent model inside `robust:` has seen the whole log, so its map cannot be used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from clickbridge.io.values import expect, stored
from clickbridge.models.candidates import Query
from clickbridge.models.latent import times
from clickbridge.models.pls import PLS
from clickbridge.models.sfunction import unit_image, unit_images
from clickbridge.models.study import Study
from clickbridge.numerics.gram import dense_kernel
from clickbridge.search.index import DenseIndex
from clickbridge.types import text_of_key
from clickbridge.views.stack import ViewStack

Array = np.ndarray[Any, Any]
DIM = 300


@stored
@dataclass(frozen=True, eq=False)
class LatentMap:
    """The unit images of the known queries, and the map for new ones by their text."""

    views: ViewStack
    weights: Array
    images: Array
    present: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "present", np.asarray(self.images.any(axis=1)))

    def check_stored(self) -> None:
        expect("a map", self.weights, (self.views.width, None))
        expect("images", self.images, (None, self.weights.shape[1]))

    def image(self, key: str) -> Array:
        """A new query's unit image; zeros if it has no known word."""
        image: Array = unit_image(times(self.views.row(text_of_key(key), {}), self.weights))
        return image

    def gram(self, rows: Array) -> Array:
        return dense_kernel(self.images[rows], self.images[rows])

    def cosines(self, image: Array, rows: Array) -> Array:
        """The cosines between an image and known queries."""
        return dense_kernel(image[None, :], self.images[rows])[0]

    def nearest(self, image: Array, k: int, among: Array) -> Array:
        """The known queries with the largest cosine, among those marked in `among`."""
        items, scores = DenseIndex(self.images, self.present & among).search(image, k)
        return items[scores > 0]


def learn_latent_map(study: Study, keys: Sequence[str], language: str, seed: int) -> LatentMap:
    """The map of a PLS model learned on the study's log, and the images of these queries."""
    model = PLS(dim=DIM, language=language, seed=seed)
    fitted = model.learn(study, model.choose(study))
    (space,) = fitted.spaces
    assert len(space.q_columns) == fitted.q_views.width, "one space takes all query features"
    images = unit_images(fitted.map_keys([Query(key) for key in keys]))
    return LatentMap(fitted.q_views, np.ascontiguousarray(space.l_x), images)
