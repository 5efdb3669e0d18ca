"""Frames, windows and transforms of signals, and derivatives through complex values, against NumPy."""

import numpy as np
import pytest

import twofold.static as tf


def _run(fetch, feed=None):
    with tf.Session() as session:
        return session.run(fetch, feed)


def _frames(values, length, step):
    return np.stack([values[start : start + length] for start in range(0, len(values) - length + 1, step)])


def test_frames_of_open_sizes():
    signal = tf.placeholder(tf.float32, [None])
    framed, padded = tf.signal.frame(signal, 4, 3), tf.signal.frame(signal, 4, 3, pad_end=True, pad_value=9)
    total = tf.signal.overlap_and_add(framed, 3)
    assert framed.shape.as_list() == [None, 4] and tf.signal.frame(tf.zeros([2, 5]), 6, 1).shape == (2, 0, 6)
    for size in (8, 10):
        values = np.arange(size, dtype=np.float32)
        found, filled, summed = _run([framed, padded, total], {signal: values})
        np.testing.assert_array_equal(found, _frames(values, 4, 3))
        count = -(-size // 3)
        np.testing.assert_array_equal(
            filled, _frames(np.pad(values, (0, 9), constant_values=9), 4, 3)[:count]
        )
        expected = np.zeros((len(found) - 1) * 3 + 4)
        for position, row in enumerate(found):
            expected[3 * position : 3 * position + 4] += row
        np.testing.assert_array_equal(summed, expected)


def test_short_transforms_and_their_inverse():
    values = np.random.default_rng(0).standard_normal(40).astype(np.float32)
    spectra = tf.signal.stft(values, 12, 3)
    back = tf.signal.inverse_stft(spectra, 12, 3, window_fn=tf.signal.inverse_stft_window_fn(3))
    found, signal = _run([spectra, back])
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(12) / 12)
    np.testing.assert_allclose(found, np.fft.rfft(_frames(values, 12, 3) * window, 16), atol=1e-5)
    np.testing.assert_allclose(signal[12:-12], values[12 : len(signal) - 12], atol=1e-5)


def test_windows_of_odd_lengths_are_not_periodic():
    assert _run(tf.signal.hann_window(5)).tolist() == _run(tf.signal.hann_window(5, periodic=False)).tolist()
    assert _run(tf.signal.hann_window(1)).tolist() == [1]


@pytest.mark.parametrize(
    "kind, inverse, factor", [(1, 1, 2 * 5), (2, 3, 2 * 6), (3, 2, 2 * 6), (4, 4, 2 * 6)]
)
def test_cosine_transforms(kind, inverse, factor):
    values = np.random.default_rng(1).standard_normal((2, 6))
    once = tf.signal.dct(values, kind)
    found = _run([tf.signal.dct(once, inverse), tf.signal.idct(once, kind)])
    np.testing.assert_allclose(found, [values * factor] * 2, atol=1e-10)
    if kind > 1:
        one = _run(tf.signal.idct(tf.signal.dct(values, kind, norm="ortho"), kind, norm="ortho"))
        np.testing.assert_allclose(one, values, atol=1e-12)


def test_mel_bands_are_triangles_of_the_mel_scale():
    weights = _run(tf.signal.linear_to_mel_weight_matrix(8, 129, 8000, 100.0, 3000.0, tf.float64))
    mel = 1127 * np.log(1 + np.linspace(0, 4000, 129) / 700)
    low, high = (1127 * np.log(1 + edge / 700) for edge in (100, 3000))
    centers = low + (high - low) * np.arange(1, 9) / 9
    expected = np.maximum(0, 1 - np.abs(mel[:, None] - centers) / ((high - low) / 9))
    np.testing.assert_allclose(weights, expected, atol=1e-9)
    with pytest.raises(ValueError, match="Nyquist"):
        tf.signal.linear_to_mel_weight_matrix(upper_edge_hertz=5000.0)


def test_derivatives_pass_through_complex_values():
    x = tf.placeholder(tf.float64, [5])
    loss = tf.reduce_sum(tf.abs(tf.spectral.rfft(x)) ** 3) + tf.reduce_sum(
        tf.imag(tf.exp(tf.complex(x, 2 * x)))
    )
    values, found = np.array([0.3, -1.0, 0.5, 0.2, 0.9]), []
    with tf.Session() as session:
        for k in range(5):
            step = np.eye(5)[k] * 1e-6
            found.append(
                (session.run(loss, {x: values + step}) - session.run(loss, {x: values - step})) / 2e-6
            )
        np.testing.assert_allclose(session.run(tf.gradients(loss, x)[0], {x: values}), found, rtol=1e-6)
    z = tf.placeholder(tf.complex64, [2])
    with pytest.raises(TypeError, match="must set grad_ys"):
        tf.gradients(z * z, z)
