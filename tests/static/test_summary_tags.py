"""Tags of summaries; the expected ones are TensorFlow 1.15's, of ``summary_scope``."""

import io
import wave

import numpy
import pytest

import twofold.static as tf


def tags(message):
    return [one.tag for one in tf.Summary.FromString(message).value]


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as found:
        yield found


def test_a_tag_tells_the_scopes_and_is_unique(session):
    with tf.name_scope("layer"):
        inner = [tf.summary.scalar("loss", 1.0), tf.summary.scalar("loss", 1.0)]
    outer = [tf.summary.scalar("loss", 1.0), tf.summary.histogram("loss", [1.0])]
    found = [tags(one)[0] for one in session.run([*inner, *outer])]
    assert found == ["layer/loss", "layer/loss_1", "loss", "loss_1"]
    assert [one.op.name for one in (*inner, *outer)] == found


def test_a_family_comes_first(session):
    with tf.name_scope("layer"):
        made = tf.summary.scalar("loss", 1.0, family="train")
    assert tags(session.run(made)) == ["train/layer/train/loss"]


def test_images_are_counted_behind_the_scope(session):
    with tf.name_scope("layer"):
        one = tf.summary.image("digit", tf.ones([2, 2, 2, 1]), max_outputs=1)
        more = tf.summary.image("digit", tf.ones([2, 2, 2, 1]))
    assert tags(session.run(one)) == ["layer/digit/image"]
    assert tags(session.run(more)) == ["layer/digit_1/image/0", "layer/digit_1/image/1"]


def test_characters_that_names_cannot_have(session):
    made = tf.summary.scalar("/Post-update loss, step 1 (50%)", 1.0)
    assert tags(session.run(made)) == ["Post-update_loss__step_1__50__"]


def test_sounds_are_wav_files_of_16_bits():
    sound = numpy.stack([numpy.linspace(-1, 1, 9), numpy.linspace(2, -2, 9)], 1).astype("f")
    with tf.Graph().as_default(), tf.Session() as session:
        both = tf.summary.audio("speech", tf.stack([sound, sound]), tf.constant(8000.0), max_outputs=1)
        mono = tf.summary.audio("mono", sound[None, :, 0], 16000, family="f")
        (stereo,), (flat,) = (tf.Summary.FromString(one).value for one in session.run([both, mono]))
    assert (stereo.tag, flat.tag) == ("speech/audio", "f/f/mono/audio/0")
    assert (stereo.audio.sample_rate, stereo.audio.num_channels, stereo.audio.length_frames) == (8000, 2, 9)
    assert (flat.audio.sample_rate, flat.audio.content_type) == (16000, "audio/wav")
    with wave.open(io.BytesIO(stereo.audio.encoded_audio_string)) as file:
        assert (file.getframerate(), file.getsampwidth()) == (8000, 2)
        found = numpy.frombuffer(file.readframes(9), "<i2").reshape(9, 2)
    numpy.testing.assert_allclose(found / 32767, numpy.clip(sound, -1, 1), atol=4e-5)


LARGEST = 1.7976931348623157e308


@pytest.mark.parametrize(
    ("values", "limits", "counts"),
    [
        ([], [LARGEST], [0]),
        ([0.0], [0.0, 1e-12, LARGEST], [0, 1, 0]),
        ([0.0, 0.0, 5.0], [0.0, 1e-12, 4.636194617418625, 5.099814079160488, LARGEST], [0, 2, 0, 1, 0]),
        ([-1e30, 1e30], [-LARGEST, -9.920775621859783e19, 9.920775621859783e19, LARGEST], [0, 1, 0, 1]),
    ],
)
def test_histograms_have_the_buckets_of_tensorflow(session, values, limits, counts):
    """The expected ones were written by TensorFlow 1.15.5."""
    made = session.run(tf.summary.histogram("h", tf.constant(values, tf.float64)))
    found = tf.Summary.FromString(made).value[0].histo
    assert (list(found.bucket_limit), list(found.bucket)) == (limits, counts)
    assert (found.min, found.max) == ((min(values), max(values)) if values else (LARGEST, -LARGEST))
    assert found.num == len(values)


def test_histograms_are_of_numbers(session):
    with pytest.raises(TypeError, match="dtype bool"):
        tf.summary.histogram("h", [True])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Infinity in summary histogram for: h"):
        session.run(tf.summary.histogram("h", [float("inf")]))
