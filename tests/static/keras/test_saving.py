"""Configurations of layers and models, and files of them: those of this library and one that Keras 2 wrote."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import twofold.static as tf
from twofold.errors import ArgumentError
from twofold.static.saving import hdf5

K, L = tf.keras, tf.keras.layers
X = numpy.random.default_rng(0).random((12, 6)).astype("f")
Y = X[:, :1] + 0.5

# Written by Keras 2 with h5py: two GRU layers, the second with the states of the first, and a layer called twice.
FROM_KERAS = (
    "H4sIAAAAAAACA+1db2wUxxXfs7E5jP8SE19RKg63qkhlzNkYYii+M8WAE4FxHZO6EOe8vlvfbdjbPXb3bBOXhm+lapsmapSSKGpT"
    "UVUon9wIKZZqzqhKI9L0A1KlymqrqFGRQqqope2H8qEVndmd2Z2Z2zuv7QOZMk+IZWbezryZ/b03896+Pb7T33e4rmZLjQApGBTW"
    "CY0CSXcRLc7QZdw+hq4BdL2ArpcrcH211RZC9Y2o/3ClXR5ENw4PHToEue8y5Aiy3b4EBU4PI/UfOjAIryOojPF0vYLmy2hJSYlP"
    "SXIqbRoELntXOG4TwiuL61qhH+G7XmgGqDwt6aIRn5R0Q9ZUUP+5QMC6s9GRIUjpSTUB5oDVXy/6d9Dqb1xMnJbU5JL91BD9VFBy"
    "1Vn92OuR0NQJOSVYcgkl+/u4ye2vkuqv0erP1EVZldUU7nKp/j4i5Ftn1Vd52oP+x+1y1qc9WGxD9oOrxkNtD2ZROY2uI1msUwEK"
    "Z1iPXz5jl2cNzFfpicfsDN2vIJTmD7fT/Ky9wvvW9Hq2v/LiuKh8HfT+jOnIweNHLRnCQqF9AtTZ3tnRHrFti2NvAJmSamj6hKJN"
    "ubbCsR+AZloTimgYcVXMSK37wq2Hc2rCBKZRVFrbwq228QD1M62YwTJUsM2yMOK4AmtNPSeBKkU8CwwrKJ9iu31SzebMo7CZ6XZc"
    "NBPpuAyb40ZazELuU2pOUdrCXaOANWmetepawRREc1cnvN3IiroBKydExYDj6mIqJSWJCjys3W8HvEnLomkhrnPebLI6ruXUZFwF"
    "07RmMgoY2dkcyoxLySSwrkXWSCLbPdbJa1IlFgL+PdqGxUzKGdC0G04pZ7oVnW3EuAboSDZlUZFfACsORQOPLWeJ0GrtgO1Eu2HN"
    "gprgkKgmtcwJVZ7Q9AwzyYysTlrLuCPSHoFiZMRpuwKVDcl6FlBquMi6lJINU9KlJO4etxDiAqacIupIXHvarSJA4qRsnvVuJe4G"
    "0hnWMptuc0Y0TsfBDRoBC3sBFUlNmWlCDs/HVgCEU6cInESsPzPnRke98HFk6EQRZKT03DIwoUtmTlfjhnQmJ6kJSwzEjVtM0ST6"
    "SGlxeB6ZEvWkQUzb4prIKURVTtU1haww5YwUz4jPazrFJZsGwpb1MESoQ1BIU1TTtoSJnK5Lqhmn2w05ldHkJGTJGVJ8XBYJ4QEC"
    "VXDYWR1EjyiarpneEPWNQFf81QlzXDfTWsrDaqbAcwb/AKZ5OYoBl2uVEp0EyDdoYUqPiR6Kp6q5y+TZbIm7Ag1GQ3pprzuiV6s1"
    "oFdDUteywCratojqhm2RM1lFyoAWDNlOi92QAJInTEn32iaQ8npZBtJ0rMI22HvQyq2DsyHS5gFXc/vA7QO3D/fSPhQ5RBazEG3h"
    "U8iqgHJHcaPRB07xUhGzAQ6L4HEtw24srbVrWSXXGvbvAbi94UsizX3mXlDDOHQ3IoAzf0A7qKkJsBmocN/whluC5vCJOXFahtLt"
    "6CBnwXTlNRVnopTKOLUdJbfaUlqTxG3LVJqOAqVRZFUSda42PtWmcFSi3WPUo53MlJVO20hH9tr0xBN7uro7d3d3+liA+62nDsq8"
    "sE3Dnzw1us6+G1FhvU+o1DgCQHLhIW2ec+cEN6brxHmtuI+iGYYV0LElzEimLicMd3Z2bB4sZEELvBOH7t1aGGDJwLWLEw+LfpZP"
    "H+kroo6oRQGaZEWtdfvgGmmH+paUEuJZZ2fOaHBbzmWcClWCT1ybdLZkOOkqJj5mmwy3vBFdiYdglXHYD99vLScRF8TxM2BMresG"
    "ht+yvUT8Dbc72z8zPh4PPVyhdon4XV2RuF+9gN93EHLvhAjdF4HlBlRfT7Xb4IYc+G3io6y8O904C+RDYUPhEXe+O+GcE5KiEMMJ"
    "m1D7Vi8+99jlCID72+zF74opNBfyxTs8JMDt27z5PCSg59/ifZ/DjdvrKHy54+O4bgPdzowmCJEa/o6AEydOnDhx4sSJUyE9PXC8"
    "L2BlHaH8m3V0HsBFVJ6r5mvlJ0+MXa9aYQ6tZy3wMUKC5VJbjqudgFI0fyoQoPw46hp0fb0NRLkG+5FBN+ekiihvYPLOqrC/GHR9"
    "P5J/fcm8NMF3Xlqt4CdfTvCdL1fn5IcJxfNFOXG7BgCD7VpkPW3X5r6M8sVQPfarbzB8F1Be12XkWqM0KSF0gObrReWxg2g8VD/7"
    "FM23iMp3jtrXblT/8klGPlRefBb1j+3z84x9RuU5xb724/oMzXcNlf+sMflmzHwXp5F8L9B2jV0vOs80JNhhO9ewNYVjaO17ha6N"
    "QtddFODCdo2lpfI9010CYRU4PWzE5lPiuOL1CM2H46oYZf1l2tdZO1CLMj2L4X+pfR3nU+JrPQHuBrRn4nK9UDyf9QbK67y9y58e"
    "XdvD9YjrkatHeD9r7KL52IAyDkBjvepepZ9xuYPed1gcc/Im/P0EXrgA+jAqUGFXrBPodWXLlcCCBKz9eStqCwstQaHlRQH7BEGr"
    "vaLC7jCILE5lINhNW15M02vgnFfh2MVgb2l+jL/Z3RxLJL330oXoYtOW/JUDoVjrSPUCrEtlfj3/tVxzz6VXdvUcPX1+/tKnsau/"
    "eWPr1Vtv/fAr/6o9fPWrN/+5vzf7zvyVP22L7t+/I7/jrxti14SPe15r+2l+7Mdv7//+D/6S//tHvbHh9ybzf8t/Lz/2y5r8L94M"
    "xW5lo9HHP+iJtQl9+YWX3swPP/Oj6KxwM//h7Y0LF3/3erThSuXCt/7xh56J3z+y0P+T5p5iMl8LzM/vfOXkwtSH/86f+WxbbGzP"
    "VH7o/DvRmi3vR8NfuNnT3fb5hU0DdQujTf/JZ6qqY1/6JBrb9s1X8y3xt/O/qnk3/9xbl6Infl6X/2B3fey3Q6/t3/epHm3Y9cfo"
    "+5u/uPDf7w7ki43bPPDt6IvHXo19Ens91vvu1qscPZw4ceLE6f/nXBmi/NVA2c6RoW76ZIrpwhpbD+/vKBcP0qfepfztxiPc3+b+"
    "duHvFpw/SPOxeXzl+t0CNi5diyRZadyKtQOPEuBuLBGnmu6zyxcP+9Ob9JNcb7jeFOrN3OEieoMSRFerN2ycarCPxjuLY04ri1Ph"
    "vOYK57xAl1d+vngMnS+2r8E4lYurkX6OkXKey7LHkF76PJddH+T7C99fCt8nho7RfPh7jHK/T2TzAGqRfVrpuazSsZs2bSbADb+B"
    "2EqUN6E6XG4qcW6LDKB9cNCfXt0Y5nrF9arw3JYdLNAr68sXoUz+Dru/Bgfoflkccyq2v3rbge4hdG4Z9mcHtn+dfv6cHm47gPMF"
    "podpPjbPoNgHdGz+QdinHWgcou0Ai2NOK/PfsJ9Wzfht1av23/oQVCJr0H+rdKQ6/43S/Bh/oWdK8zn74wjH1b3FlbkmcbXUe5fq"
    "ss3/Z93eO/KD8d5lcHR5/v3lMe6H8PNHoX9/59lCP6TjHvj3bP5+uf37FgLc8B3MNqK8mfH/m0uc6xufQ1ZxzJ9ezSa5XnG9KvTv"
    "B8fur39/a5Tul8Uxp+X596Fx5B8l/dmBYIr799wOFPr3I8n769/fFmk7wOKY01rzw+YfCP9+TPbn39+R/Pn3g2mOq3uLq88ecv/+"
    "sb0Psn8fQd8npyn/nn/fz8nf+QPb40WFxRuyv2Ua1/mdD+a7+3J/D19MT4JnaK1e8j2cyf11rieFcTAhS/Ph3zEtVxwME/s7qPj7"
    "fDbfGefZ4Hgc/t1SLJepZeOKNCkpcfp/eCt33I79nYxyf+ffQCgj1O06otziQ5/PT3J95vpc+P3+DaO0313u7/cXq+n9lf1/1Tit"
    "zj8qdl25f9C1l9kB1pDf7X6/f33Kn9+dzXEsLcfPLB+O+vZ670Bry8/k/iOnlfiPoZn74z+yv7NWbv/xf3euqALYewAA"
)


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def fresh() -> Any:
    """A new default graph, with numbers of names from the start."""
    return tf.Graph().as_default()


def test_a_file_of_keras(tmp_path: Path) -> None:
    path = tmp_path / "model.h5"
    path.write_bytes(gzip.decompress(base64.b64decode(FROM_KERAS)))
    model = K.models.load_model(str(path))
    x, y = numpy.array([[0, 1, 2, 3], [4, 3, 2, 1]]), numpy.array([[1.0], [2.0]])
    wanted = [[-0.027702022343873978], [-0.019083011895418167]]
    numpy.testing.assert_allclose(model.predict(x), wanted, rtol=1e-5)
    losses = [model.train_on_batch(x, y) for _ in range(3)]
    numpy.testing.assert_allclose(
        losses, [2.5736629962921143, 0.5024523735046387, 0.2783063054084778], rtol=1e-5
    )


def deep() -> Any:
    model = K.Sequential(name="deep")
    options = {"kernel_regularizer": K.regularizers.l1_l2(0.01, 0.02), "kernel_constraint": "non_neg"}
    model.add(
        L.Dense(4, "relu", input_shape=(6,), kernel_initializer=K.initializers.he_normal(seed=1), **options)
    )
    model.add(L.BatchNormalization())
    model.add(L.Dense(1, bias_initializer=tf.constant_initializer(0.25)))
    return model


def twice(x: Any) -> Any:
    return x * 2.0


def branched() -> Any:
    one, two = L.Input([6]), L.Input([6], name="second")
    shared = L.Dense(3, "tanh", name="shared")
    parts = [shared(one), L.Lambda(twice)(shared(two)), L.Reshape([6, 1])(two)]
    parts[2] = L.Bidirectional(L.LSTM(2, return_sequences=True), merge_mode="sum")(parts[2])
    parts[2] = L.RNN([L.SimpleRNNCell(2), L.GRUCell(2)])(L.TimeDistributed(L.Dense(2))(parts[2]))
    return K.Model([one, two], [L.Dense(1)(L.Concatenate()(parts)), L.Dense(2)(parts[0])])


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "rmsprop", "adagrad", "adadelta"])
def test_training_goes_on_as_if_nothing_had_been(tmp_path: Path, optimizer: str) -> None:
    model = deep()
    model.compile(optimizer, "mse", metrics=["mae"])
    model.fit(X, Y, verbose=0, epochs=2)
    model.save(str(tmp_path / "model.h5"))
    found, steps = model.predict(X), [model.train_on_batch(X, Y) for _ in range(3)]
    with fresh():
        again = K.models.load_model(str(tmp_path / "model.h5"))
        assert again.name == "deep" and again.to_json() == model.to_json()
        numpy.testing.assert_array_equal(again.predict(X), found)
        assert [again.train_on_batch(X, Y) for _ in range(3)] == steps


def test_models_of_several_inputs_and_outputs(tmp_path: Path) -> None:
    model = branched()
    model.compile(
        K.optimizers.SGD(lr=0.1, momentum=0.9), ["mse", K.losses.Huber(delta=0.5)], loss_weights=[1.0, 0.5]
    )
    labels = [Y, X[:, :2]]
    model.train_on_batch([X, X], labels)
    K.models.save_model(model, str(tmp_path / "model.hdf5"))
    model.save_weights(str(tmp_path / "weights.h5"))
    text, found = model.to_json(), model.predict([X, X])
    steps = [model.train_on_batch([X, X], labels) for _ in range(2)]
    with fresh():
        again = K.models.load_model(str(tmp_path / "model.hdf5"), {"twice": twice})
        for one, other in zip(again.predict([X, X]), found, strict=True):
            numpy.testing.assert_array_equal(one, other)
        assert [again.train_on_batch([X, X], labels) for _ in range(2)] == steps
        made = K.models.model_from_json(text, {"twice": twice})
        made.load_weights(str(tmp_path / "weights.h5"))
        numpy.testing.assert_array_equal(made.predict([X, X])[1], found[1])
        copied = K.models.clone_model(made)
        copied.set_weights(made.get_weights())
        numpy.testing.assert_array_equal(copied.predict([X, X])[0], found[0])
    with pytest.raises(ValueError, match="Unknown function: twice"):
        K.models.model_from_json(text)


def test_several_outputs_are_measured_each() -> None:
    x = L.Input([6])
    model = K.Model(x, [L.Dense(1, name="a")(x), L.Dense(2, name="b")(x)])
    model.compile("sgd", ["mse", "mae"], metrics=["mse"], loss_weights=[1.0, 0.5])
    assert model.metrics_names == ["loss", "a_loss", "b_loss", "a_mean_squared_error", "b_mean_squared_error"]
    a, b = model.predict(X)
    total, one, two, *squares = model.evaluate(X, [Y, X[:, :2]], verbose=0)
    wanted = [((a - Y) ** 2).mean(), abs(b - X[:, :2]).mean(), ((b - X[:, :2]) ** 2).mean()]
    numpy.testing.assert_allclose([one, two, squares[1]], wanted, rtol=1e-5)
    assert total == pytest.approx(one + 0.5 * two) and squares[0] == pytest.approx(one)


def test_layers_are_in_order_of_their_distance_to_the_outputs() -> None:
    # as Keras 2 has them
    wanted = (
        "second reshape input_1 bidirectional shared time_distributed lambda rnn concatenate dense_1 dense_2"
    )
    assert [layer.name for layer in branched().layers] == wanted.split()


class Scale(L.Layer):
    """A layer of the program's own."""

    def __init__(self, factor: float, **options: Any) -> None:
        super().__init__(**options)
        self.factor = factor

    def call(self, inputs: Any) -> Any:
        return inputs * self.factor


class Told(Scale):
    def get_config(self) -> dict[str, Any]:
        return {**super(Scale, self).get_config(), "factor": self.factor}


def test_layers_of_the_program() -> None:
    model = K.Sequential([L.Dense(1, input_shape=(6,)), Told(3.0, name="told")])
    text = model.to_json()
    with K.utils.CustomObjectScope({"Told": Told}):
        again = K.models.model_from_json(text)
    again.set_weights(model.get_weights())
    numpy.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="Unknown layer: Told"):
        K.models.model_from_json(text)
    with pytest.raises(NotImplementedError, match="factor"):
        Scale(2.0).get_config()
    with pytest.raises(ArgumentError, match="without a name"):
        K.Sequential([L.Lambda(lambda x: x, input_shape=(6,))]).to_json()


def test_configurations() -> None:
    layer = L.Conv2D(
        3, 2, activation="relu", kernel_initializer=K.initializers.RandomUniform(minval=-2.0, seed=3)
    )
    config = json.loads(json.dumps(layer.get_config()))
    assert (config["filters"], config["activation"]) == (3, "relu")
    assert config["kernel_initializer"]["config"]["minval"] == -2.0
    again = L.Conv2D.from_config(config)
    assert again.name == layer.name and again.get_config() == layer.get_config()
    # what Keras 2 writes for a layer
    text = """{"class_name": "LSTM", "config": {"name": "lstm", "trainable": true, "dtype": "float32",
        "return_sequences": true, "return_state": false, "go_backwards": false, "stateful": false, "unroll": false,
        "time_major": false, "units": 3, "activation": "tanh", "recurrent_activation": "hard_sigmoid",
        "use_bias": true, "kernel_initializer": {"class_name": "GlorotUniform", "config": {"seed": null}},
        "recurrent_initializer": {"class_name": "Orthogonal", "config": {"gain": 1.0, "seed": null}},
        "bias_initializer": {"class_name": "Zeros", "config": {}}, "unit_forget_bias": true,
        "kernel_regularizer": {"class_name": "L1L2", "config": {"l1": 0.0, "l2": 0.01}},
        "recurrent_regularizer": null, "bias_regularizer": null, "activity_regularizer": null,
        "kernel_constraint": null, "recurrent_constraint": null, "bias_constraint": null, "dropout": 0.0,
        "recurrent_dropout": 0.0, "implementation": 1}}"""
    made = L.deserialize(json.loads(text))
    assert made(tf.zeros([2, 4, 5])).shape == (2, 4, 3) and len(made.losses) == 1
    config = json.loads(text)
    config["config"]["kernel_constraint"] = {"class_name": "NonNeg", "config": {}}
    L.deserialize(config)
    with pytest.raises(TypeError, match="other_constraint"):
        config["config"]["other_constraint"] = {"class_name": "NonNeg", "config": {}}
        L.deserialize(config)


def test_scopes_name_objects() -> None:
    with K.utils.custom_object_scope({"double": twice}):
        layer = L.Dense(1, activation="double")
    assert layer.activation is twice and layer.get_config()["activation"] == "twice"
    K.utils.get_custom_objects()["everywhere"] = twice
    try:
        assert K.activations.get("everywhere") is twice
    finally:
        del K.utils.get_custom_objects()["everywhere"]
    assert K.regularizers.get({"class_name": "L2", "config": {"l2": 0.5}}).get_config() == {
        "l1": 0.0,
        "l2": 0.5,
    }


def test_files_that_do_not_fit(tmp_path: Path) -> None:
    model = deep()
    model.save_weights(str(tmp_path / "weights.h5"))
    with pytest.raises(ValueError, match="holds no model"):
        K.models.load_model(str(tmp_path / "weights.h5"))
    with pytest.raises(ValueError, match="3 layers with variables for a model of 1"):
        K.Sequential([L.Dense(4, input_shape=(6,))]).load_weights(str(tmp_path / "weights.h5"))
    with pytest.raises(FileExistsError):
        model.save(str(tmp_path / "weights.h5"), overwrite=False)
    (tmp_path / "other.h5").write_bytes(b"text")
    with pytest.raises(ValueError, match="no HDF5 file"):
        K.models.load_model(str(tmp_path / "other.h5"))


def test_layers_by_name(tmp_path: Path) -> None:
    model = deep()
    model.save_weights(str(tmp_path / "weights.h5"))
    other = K.Sequential([L.Dense(4, input_shape=(6,), name="dense"), L.Dense(3)])
    other.load_weights(str(tmp_path / "weights.h5"), by_name=True)
    numpy.testing.assert_array_equal(other.get_weights()[0], model.get_weights()[0])


def test_models_are_saved_while_they_train(tmp_path: Path) -> None:
    model = deep()
    model.compile("sgd", "mse")
    kept = K.callbacks.ModelCheckpoint(str(tmp_path / "{epoch}.h5"), period=2)
    model.fit(X, Y, epochs=4, verbose=0, callbacks=[kept])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2.h5", "4.h5"]
    found = model.predict(X)
    with fresh():
        numpy.testing.assert_array_equal(K.models.load_model(str(tmp_path / "4.h5")).predict(X), found)


def test_groups_and_attributes(tmp_path: Path) -> None:
    group = hdf5.Group(
        {"text": b"abc", "long": b"x" * 70000, "names": numpy.array([b"a", b"bcd"]), "count": 3}
    )
    wanted = {f"model/layer_{k}/kernel:0": numpy.arange(6.0).reshape(2, 3) + k for k in range(20)}
    wanted |= {"half": numpy.float16([1, 2]), "bytes": numpy.uint8([3]), "none": numpy.zeros((0, 2))}
    for path, value in wanted.items():
        group.put(path, value)
    hdf5.write(tmp_path / "file.h5", group)
    again = hdf5.read(tmp_path / "file.h5")
    for path, value in wanted.items():
        assert again.at(path).dtype == value.dtype
        numpy.testing.assert_array_equal(again.at(path), value)
    assert again.attributes["text"] == "abc" and len(again.attributes["long"]) == 70000
    assert again.attributes["names"].tolist() == [b"a", b"bcd"] and again.attributes["count"] == 3
