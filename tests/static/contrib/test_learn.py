"""Vocabularies, the projector's configuration and modes, by their definitions in TensorFlow 1.15."""

import numpy
import pytest

import twofold.static as tf
from twofold.static.contrib.learn.python.learn.datasets import mnist
from twofold.static.contrib.tensorboard.plugins import projector

TEXTS = ["the cat sat", "the dog sat on the mat", "cat"]


def test_words_are_numbered_as_they_come():
    words = tf.contrib.learn.preprocessing.VocabularyProcessor(5)
    found = numpy.array(list(words.fit_transform(TEXTS)))
    assert found.tolist() == [[1, 2, 3, 0, 0], [1, 4, 3, 5, 1], [2, 0, 0, 0, 0]]
    assert numpy.array(list(words.transform(["a cat"]))).tolist() == [[0, 2, 0, 0, 0]]
    assert list(words.reverse([[1, 2, 0]])) == ["the cat <UNK>"]
    assert len(words.vocabulary_) == 7


def test_rare_words_are_unknown():
    words = tf.contrib.learn.preprocessing.VocabularyProcessor(3, min_frequency=1)
    words.fit(TEXTS)
    assert numpy.array(list(words.transform(TEXTS))).tolist() == [[1, 2, 3], [1, 0, 3], [2, 0, 0]]


def test_a_vocabulary_is_kept_in_a_file(tmp_path):
    words = tf.contrib.learn.preprocessing.VocabularyProcessor(3, min_frequency=1).fit(TEXTS)
    words.save(tmp_path / "words")
    again = tf.contrib.learn.preprocessing.VocabularyProcessor.restore(tmp_path / "words")
    rows = [numpy.array(list(one.transform([*TEXTS, "new"]))) for one in (words, again)]
    numpy.testing.assert_array_equal(*rows)
    split = tf.contrib.learn.preprocessing.VocabularyProcessor(
        3, tokenizer_fn=lambda texts: (t.split() for t in texts)
    )
    assert numpy.array(list(split.fit_transform(["a-b c!"]))).tolist() == [[1, 2, 0]]
    with pytest.raises(ValueError, match="cannot be written"):
        split.save(tmp_path / "split")


def characters(texts):
    for text in texts:
        yield list(text)


class Characters(tf.contrib.learn.preprocessing.VocabularyProcessor):
    """As programs write it: a tokenizer of their own, given to the class that they derive from."""

    def __init__(self, max_document_length):
        super().__init__(max_document_length, tokenizer_fn=characters)


def test_a_class_and_a_tokenizer_of_the_program_are_kept_in_a_file(tmp_path):
    words = Characters(4).fit(["abca", "b"])
    words.save(tmp_path / "words")
    again = Characters(9).restore(tmp_path / "words")
    assert type(again) is Characters and again.max_document_length == 4
    assert numpy.array(list(again.transform(["cab?"]))).tolist() == [[3, 1, 2, 0]]
    assert list(again.reverse([[3, 1]])) == ["c a"]


def test_vocabularies_have_the_attributes_of_tensorflow():
    vocabulary = tf.contrib.learn.preprocessing.VocabularyProcessor(3).fit(TEXTS).vocabulary_
    assert vocabulary._mapping["cat"] == 2 and vocabulary._freq["cat"] == 2
    assert vocabulary._reverse_mapping[:3] == ["<UNK>", "the", "cat"]


def test_the_projector_is_told_in_a_file(tmp_path):
    config = projector.ProjectorConfig()
    table = config.embeddings.add()
    table.tensor_name, table.metadata_path = "words:0", "words.tsv"
    table.sprite.single_image_dim.extend([28, 28])
    with tf.summary.FileWriter(tmp_path) as writer:
        projector.visualize_embeddings(writer, config)
    text = (tmp_path / "projector_config.pbtxt").read_text()
    assert text.splitlines()[:3] == [
        "embeddings {",
        '  tensor_name: "words:0"',
        '  metadata_path: "words.tsv"',
    ]
    assert text.count("single_image_dim: 28") == 2
    with pytest.raises(ValueError, match="ProjectorConfig"):
        projector.visualize_embeddings(writer, "words")


def test_modes_and_data():
    assert (tf.contrib.learn.ModeKeys.TRAIN, tf.contrib.learn.ModeKeys.EVAL) == ("train", "eval")
    assert mnist.read_data_sets is tf.examples.tutorials.mnist.input_data.read_data_sets
