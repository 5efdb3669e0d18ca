"""TensorFlow's files of layers, by the public modules that have their names."""

from twofold.static.python.positions import enter

enter(
    __name__,
    {"utils": "python.tensor_util", "core convolutional normalization pooling layers base": "layers"},
)
