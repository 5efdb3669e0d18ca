"""Modes, vocabularies and data sets of ``tf.contrib.learn``; its estimators are in ``tf.estimator``."""

from twofold.static.contrib.learn import preprocessing as preprocessing


class ModeKeys:
    """What a model is made for.

    >>> import twofold.static as tf
    >>> tf.contrib.learn.ModeKeys.INFER
    'infer'
    """

    TRAIN, EVAL, INFER = "train", "eval", "infer"
