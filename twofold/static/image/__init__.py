"""Images decoded, resized, rotated, cut and recoloured: ``tf.image``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twofold.lazy import attach as _attach
from twofold.tracebacks import prepared as _prepared

if TYPE_CHECKING:
    from twofold.static.image.boxes import crop_and_resize, non_max_suppression, resize_area
    from twofold.static.image.colors import *  # noqa: F403
    from twofold.static.image.distorted_boxes import draw_bounding_boxes, sample_distorted_bounding_box
    from twofold.static.image.files import *  # noqa: F403
    from twofold.static.image.glimpses import extract_glimpse
    from twofold.static.image.patches import (
        adjust_jpeg_quality,
        combined_non_max_suppression,
        extract_patches,
        non_max_suppression_overlaps,
        non_max_suppression_padded,
        non_max_suppression_with_scores,
        resize_image_with_pad,
        sobel_edges,
    )
    from twofold.static.image.similarity import *  # noqa: F403
    from twofold.static.image.transformations import *  # noqa: F403

__getattr__, __dir__ = _attach(__name__, _prepared)
