"""Serialised ``Example`` messages as items: ``slim.tfexample_decoder``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from twofold.dtypes import uint8
from twofold.static import image, math
from twofold.static.arrays import shape_ops
from twofold.static.control_flow.conditional import cond
from twofold.static.control_flow.map_scan import map_fn
from twofold.static.data.example_parsing import FixedLenFeature, parse_single_example
from twofold.static.sparse import SparseTensor, sparse_reshape, sparse_tensor_to_dense
from twofold.static.strings.string_functions import decode_raw


class ItemHandler:
    """Makes an item of features: a subclass has ``tensors_to_item(keys_to_tensors)``."""

    def __init__(self, keys: Any) -> None:
        self.keys = [keys] if isinstance(keys, str) else list(keys)

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        """The item of the features by their keys."""
        raise NotImplementedError(f"{type(self).__name__} has no tensors_to_item. Define it.")


class ItemHandlerCallback(ItemHandler):
    """The item that a function makes of a dict of features."""

    def __init__(self, keys: Any, func: Callable[[Mapping[str, Any]], Any]) -> None:
        super().__init__(keys)
        self._func = func

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        return self._func(keys_to_tensors)


def _dense(value: Any) -> Any:
    return sparse_tensor_to_dense(value) if isinstance(value, SparseTensor) else value


class Tensor(ItemHandler):
    """A feature, reshaped to ``shape`` or to what the features ``shape_keys`` say; a sparse one becomes dense.

    Args:
        tensor_key: The key of the feature.
        shape_keys: The key of a feature with the shape, or those of its sizes.
        shape: The shape.
        default_value: Where a sparse feature has no element.

    Raises:
        ValueError: For both ``shape`` and ``shape_keys``.
    """

    def __init__(
        self, tensor_key: str, shape_keys: Any = None, shape: Any = None, default_value: Any = 0
    ) -> None:
        if shape is not None and shape_keys is not None:
            raise ValueError("Cannot specify both shape_keys and shape parameters. Give one of them.")
        given = [shape_keys] if isinstance(shape_keys, str) else list(shape_keys or ())
        super().__init__([tensor_key, *given])
        self._shape_keys, self._shape, self._default = given, shape, default_value

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        value, shape = keys_to_tensors[self.keys[0]], self._shape
        if self._shape_keys:
            sizes = [_dense(keys_to_tensors[key]) for key in self._shape_keys]
            shape = shape_ops.reshape(shape_ops.stack(sizes), [-1])
        if isinstance(value, SparseTensor):
            value = value if shape is None else sparse_reshape(value, shape)
            return sparse_tensor_to_dense(value, self._default)
        return value if shape is None else shape_ops.reshape(value, shape)


class Image(ItemHandler):
    """A decoded image of ``channels``.

    Args:
        image_key: The key of the encoded image.
        format_key: The key of its format: "raw" says that the bytes are elements; files tell their format.
        shape: Of the image, if it is known.
        channels: How many there are.
        dtype: Of the elements.
        repeated: Whether the feature is a list of images of one size.

    Raises:
        ValueError: For another dtype than uint8 of files.
    """

    def __init__(
        self,
        image_key: str | None = None,
        format_key: str | None = None,
        shape: Any = None,
        channels: int = 3,
        dtype: Any = uint8,
        repeated: bool = False,
    ) -> None:
        self._image, self._format = image_key or "image/encoded", format_key or "image/format"
        super().__init__([self._image, self._format])
        self._shape, self._channels, self._dtype, self._repeated = shape, channels, dtype, repeated

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        contents, form = keys_to_tensors[self._image], keys_to_tensors[self._format]
        if self._repeated:
            return map_fn(lambda one: self._decoded(one, form), contents, dtype=self._dtype)
        return self._decoded(contents, form)

    def _decoded(self, contents: Any, form: Any) -> Any:
        contents, form = shape_ops.reshape(contents, []), shape_ops.reshape(form, [])
        is_raw = math.logical_or(math.equal(form, "raw"), math.equal(form, "RAW"))
        sizes = [None, None, self._channels]

        def raw() -> Any:
            values = decode_raw(contents, self._dtype)
            wanted = self._shape if self._shape is not None else [-1, 1, self._channels]
            return shape_ops.reshape(values, wanted)

        def of_file() -> Any:
            found = image.decode_image(contents, self._channels)
            found.set_shape(sizes)
            return math.cast(found, self._dtype)

        made = cond(is_raw, raw, of_file)
        made.set_shape(sizes)
        return made if self._shape is None else shape_ops.reshape(made, self._shape)


class BoundingBox(ItemHandler):
    """Boxes of four features, ``[count, 4]``: their sides in the order of ``keys``.

    Raises ValueError unless there are four keys.
    """

    def __init__(self, keys: Sequence[str] | None = None, prefix: str | None = None) -> None:
        sides = list(keys or ("ymin", "xmin", "ymax", "xmax"))
        if len(sides) != 4:
            raise ValueError(f"BoundingBox expects 4 keys but got {len(sides)}. Give one for each side.")
        super().__init__([(prefix or "") + side for side in sides])

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        sides = [keys_to_tensors[key] for key in self.keys]
        values = [one.values if isinstance(one, SparseTensor) else one for one in sides]
        return shape_ops.stack([shape_ops.reshape(one, [-1]) for one in values], 1)


class TFExampleDecoder:
    """Makes items of serialised examples.

    Args:
        keys_to_features: Instances of ``tf.FixedLenFeature`` and its kin by key.
        items_to_handlers: Instances of ``ItemHandler`` by item.

    >>> import twofold.static as tf
    >>> decoder = tf.contrib.slim.tfexample_decoder.TFExampleDecoder(
    ...     {"label": tf.FixedLenFeature([], tf.int64)},
    ...     {"label": tf.contrib.slim.tfexample_decoder.Tensor("label")},
    ... )
    >>> decoder.list_items()
    ['label']
    """

    def __init__(
        self, keys_to_features: Mapping[str, Any], items_to_handlers: Mapping[str, ItemHandler]
    ) -> None:
        self._features, self._handlers = dict(keys_to_features), dict(items_to_handlers)

    def list_items(self) -> list[str]:
        """The names of the items."""
        return list(self._handlers)

    def decode(self, serialized_example: Any, items: Sequence[str] | None = None) -> list[Any]:
        """The tensors of items, all unless given, of a serialised example."""
        found = parse_single_example(serialized_example, self._features)
        for key, feature in self._features.items():
            if isinstance(feature, FixedLenFeature):
                found[key] = shape_ops.reshape(found[key], feature.shape)
        handlers = [self._handlers[one] for one in (items or self._handlers)]
        return [one.tensors_to_item({key: found[key] for key in one.keys}) for one in handlers]
