"""Networks of ``slim.nets``: published numbers of parameters, names of variables, and dense features."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

import twofold.static as tf

slim = tf.contrib.slim
nets = slim.nets


def variables(size: int, scope: Any, network: Any, **options: Any) -> dict[str, int]:
    """The sizes of what a network for 1000 classes learns, by name."""
    with tf.Graph().as_default():
        with slim.arg_scope(scope()):
            logits, found = network(tf.placeholder(tf.float32, [2, size, size, 3]), 1000, **options)
        assert logits.shape.as_list()[-1] == 1000 and all(value.shape.ndims for value in found.values())
        return {one.op.name: math.prod(one.shape.as_list()) for one in tf.trainable_variables()}


@pytest.mark.parametrize(
    ("network", "expected"), [("vgg_a", 132863336), ("vgg_16", 138357544), ("vgg_19", 143667240)]
)
def test_vgg_has_as_many_parameters_as_published(network, expected):
    found = variables(224, nets.vgg.vgg_arg_scope, getattr(nets.vgg, network))
    assert sum(found.values()) == expected and f"{network}/conv3/conv3_2/weights" in found


@pytest.mark.parametrize(("count", "expected"), [(50, 25557032), (101, 44549160), (152, 60192808)])
def test_residual_networks_have_as_many_parameters_as_published(count, expected):
    network = getattr(nets.resnet_v1, f"resnet_v1_{count}")
    found = variables(224, nets.resnet_utils.resnet_arg_scope, network)
    assert sum(found.values()) == expected
    assert f"resnet_v1_{count}/block2/unit_1/bottleneck_v1/shortcut/BatchNorm/gamma" in found


def test_inception_networks_have_as_many_parameters_as_published():
    found = variables(299, nets.inception.inception_v3_arg_scope, nets.inception.inception_v3)
    assert sum(found.values()) == 27161264 - sum(
        size for name, size in found.items() if name.endswith("beta")
    )
    assert "InceptionV3/Mixed_5c/Branch_1/Conv_1_0c_5x5/weights" in found
    found = variables(224, nets.inception.inception_v1_arg_scope, nets.inception.inception_v1)
    assert sum(found.values()) == 6624904 - sum(size for name, size in found.items() if name.endswith("beta"))
    shallow = {"depth_multiplier": 0.25, "dropout_keep_prob": 1.0}
    found = variables(224, nets.inception.inception_v2_arg_scope, nets.inception.inception_v2, **shallow)
    assert found["InceptionV2/Conv2d_1a_7x7/depthwise_weights"] == 7 * 7 * 3 * 5


def test_other_chains_end_in_one_position():
    assert len(variables(224, nets.alexnet.alexnet_v2_arg_scope, nets.alexnet.alexnet_v2)) == 16
    assert len(variables(231, nets.overfeat.overfeat_arg_scope, nets.overfeat.overfeat)) == 16


@pytest.mark.parametrize("version", [1, 2])
def test_dense_features_of_residual_networks_contain_the_nominal_ones(version):
    module = getattr(nets, f"resnet_v{version}")
    network, block = (getattr(module, f"resnet_v{version}{end}") for end in ("", "_block"))
    blocks = [block("block1", 1, 2, 2), block("block2", 2, 2, 2), block("block3", 2, 1, 1)]
    options = {"is_training": False, "global_pool": False, "scope": "own", "reuse": tf.AUTO_REUSE}
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(numpy.random.default_rng(0).standard_normal((1, 33, 33, 3)), tf.float32)
        with slim.arg_scope(nets.resnet_utils.resnet_arg_scope()):
            (nominal, _), (dense, _) = (network(x, blocks, output_stride=one, **options) for one in (None, 8))
            with pytest.raises(ValueError, match="cannot be reached"):
                network(x, blocks, output_stride=12, **options)
        session.run(tf.global_variables_initializer())
        few, many = session.run([nominal, dense])
    assert few.shape == (1, 3, 3, 8) and many.shape == (1, 5, 5, 8)
    numpy.testing.assert_allclose(many[:, ::2, ::2], few, rtol=1e-4, atol=1e-5)


def test_layers_up_to_an_endpoint():
    with tf.Graph().as_default():
        x = tf.zeros([1, 299, 299, 3])
        net, found = nets.inception.inception_v3_base(x, "Mixed_6a", depth_multiplier=0.1, min_depth=4)
        assert net is found["Mixed_6a"] and list(found)[-1] == "Mixed_6a" and net.shape[1] == 17
        with pytest.raises(ValueError, match="final endpoint"):
            nets.inception.inception_v1_base(tf.zeros([1, 32, 32, 3]), "Mixed_9")
