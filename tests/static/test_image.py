"""Images rotated, cut and recoloured, against NumPy and Python's own colour models."""

import colorsys

import numpy
import pytest

import twofold.static as tf

RANDOM = numpy.random.default_rng(0)
IMAGES = RANDOM.random((2, 4, 6, 3)).astype("f")
BYTES = RANDOM.integers(0, 256, (4, 6, 3)).astype("u1")
image = tf.image


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


TURNED = {
    "flip_left_right": (image.flip_left_right, lambda x: x[..., :, ::-1, :]),
    "flip_up_down": (image.flip_up_down, lambda x: x[..., ::-1, :, :]),
    "transpose": (image.transpose_image, lambda x: x.swapaxes(-3, -2)),
    "rot90": (lambda x: image.rot90(x, 3), lambda x: numpy.rot90(x, 3, (-3, -2))),
    "crop": (lambda x: image.crop_to_bounding_box(x, 1, 2, 2, 3), lambda x: x[..., 1:3, 2:5, :]),
    "central": (lambda x: image.central_crop(x, 0.5), lambda x: x[..., 1:3, 1:5, :]),
    "gray to rgb": (lambda x: image.grayscale_to_rgb(x[..., :1]), lambda x: x[..., :1].repeat(3, -1)),
}


@pytest.mark.parametrize("name", TURNED)
def test_pixels_move(session, name):
    change, expected = TURNED[name]
    for value in (IMAGES, IMAGES[0], BYTES):
        found = session.run(change(tf.constant(value)))
        assert found.dtype == value.dtype and (found == expected(value)).all()


def test_sizes_are_made_to_fit(session):
    padded = session.run(image.pad_to_bounding_box(IMAGES, 1, 2, 7, 9))
    assert (padded[:, 1:5, 2:8] == IMAGES).all() and padded.sum() == pytest.approx(IMAGES.sum(), rel=1e-5)
    fitted = session.run(image.resize_image_with_crop_or_pad(IMAGES[0], 8, 3))
    assert fitted.shape == (8, 3, 3) and (fitted[2:6] == IMAGES[0][:, 1:4]).all()
    assert (fitted[:2] == 0).all() and (fitted[6:] == 0).all()
    with pytest.raises(ValueError, match="Cut inside the image"):
        image.crop_to_bounding_box(IMAGES, 3, 0, 2, 2)
    with pytest.raises(ValueError, match="holds the image"):
        image.pad_to_bounding_box(IMAGES, 0, 0, 3, 9)


def test_random_changes(session):
    tf.set_random_seed(0)
    many = numpy.broadcast_to(IMAGES[:1], (64, 4, 6, 3))
    flipped = session.run(image.random_flip_left_right(many))
    mirrored = (flipped == IMAGES[0][:, ::-1]).all((1, 2, 3))
    kept = (flipped == IMAGES[0]).all((1, 2, 3))
    assert (mirrored ^ kept).all() and 15 < mirrored.sum() < 49
    part = tf.random_crop(IMAGES[0], [2, 3, 3])
    runs = [session.run(part) for _ in range(30)]
    positions = set()
    for found in runs:
        positions |= {
            (r, c) for r in range(3) for c in range(4) if (IMAGES[0][r : r + 2, c : c + 3] == found).all()
        }
    assert len(positions) > 5
    with pytest.raises(ValueError, match="Cut inside the tensor"):
        tf.random_crop(IMAGES[0], [5, 3, 3])
    brighter = image.random_brightness(IMAGES[0], 0.3)
    found = session.run(brighter) - IMAGES[0]
    assert abs(found).max() <= 0.3 and numpy.ptp(found) < 1e-6
    assert session.run(image.random_contrast(BYTES, 0.5, 1.5)).dtype == numpy.uint8
    assert session.run(image.random_hue(IMAGES, 0.2)).shape == IMAGES.shape
    assert session.run(image.random_saturation(IMAGES, 0.5, 2.0)).shape == IMAGES.shape


def by_pixel(function):
    flat = IMAGES.reshape(-1, 3)
    return numpy.array([function(*pixel) for pixel in flat.tolist()]).reshape(IMAGES.shape)


def changed_hue(r, g, b):
    h, s, v = colorsys.rgb_to_hsv(r, g, b)
    return colorsys.hsv_to_rgb((h + 0.3) % 1, s, v)


def more_saturated(r, g, b):
    h, s, v = colorsys.rgb_to_hsv(r, g, b)
    return colorsys.hsv_to_rgb(h, min(s * 1.5, 1), v)


def test_colours(session):
    cases = [
        (image.rgb_to_hsv(IMAGES), by_pixel(colorsys.rgb_to_hsv)),
        (image.hsv_to_rgb(IMAGES), by_pixel(colorsys.hsv_to_rgb)),
        (image.adjust_hue(IMAGES, 0.3), by_pixel(changed_hue)),
        (image.adjust_saturation(IMAGES, 1.5), by_pixel(more_saturated)),
        (image.rgb_to_grayscale(IMAGES), IMAGES @ numpy.array([[0.2989], [0.5870], [0.1140]])),
        (image.adjust_brightness(IMAGES, 0.2), IMAGES + 0.2),
        (image.adjust_gamma(IMAGES, 2.0, 0.5), 0.5 * IMAGES**2),
        (
            image.adjust_contrast(IMAGES, 2.0),
            2 * (IMAGES - IMAGES.mean((1, 2), keepdims=True)) + IMAGES.mean((1, 2), keepdims=True),
        ),
    ]
    for mine, theirs in zip(session.run([case[0] for case in cases]), (case[1] for case in cases)):
        numpy.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)
    gray = numpy.array([[[0.5, 0.5, 0.5], [0.0, 0.0, 0.0]]], "f")
    assert session.run(image.rgb_to_hsv(gray)).tolist() == [[[0, 0, 0.5], [0, 0, 0]]]
    brighter = session.run(image.adjust_brightness(BYTES, 0.5)).astype(int)
    assert abs(brighter - numpy.minimum(BYTES.astype(int) + 127.5, 255)).max() <= 1


def test_dtypes(session):
    floats = image.convert_image_dtype(BYTES, tf.float32)
    back, wide, same = session.run(
        [image.convert_image_dtype(floats, tf.uint8), image.convert_image_dtype(BYTES, tf.int32), floats]
    )
    assert (back == BYTES).all() and same.max() <= 1
    assert (wide == BYTES.astype("i4") * 2**23).all()
    assert session.run(image.convert_image_dtype([2.0, -1.0], tf.uint8, True)).tolist() == [255, 0]


def test_measures(session):
    standard = session.run(image.per_image_standardization(IMAGES))
    numpy.testing.assert_allclose(standard.mean((1, 2, 3)), 0, atol=1e-6)
    numpy.testing.assert_allclose(standard.std((1, 2, 3)), 1, rtol=1e-5)
    assert (session.run(image.per_image_standardization(numpy.ones((2, 2, 3), "u1"))) == 0).all()
    varied = abs(numpy.diff(IMAGES, axis=1)).sum((1, 2, 3)) + abs(numpy.diff(IMAGES, axis=2)).sum((1, 2, 3))
    numpy.testing.assert_allclose(session.run(image.total_variation(IMAGES)), varied, rtol=1e-5)
    down, right = session.run(image.image_gradients(IMAGES))
    assert (down[:, :-1] == numpy.diff(IMAGES, axis=1)).all() and (down[:, -1] == 0).all()
    assert (right[:, :, :-1] == numpy.diff(IMAGES, axis=2)).all() and (right[:, :, -1] == 0).all()
    noisy = IMAGES + 0.1
    expected = -10 * numpy.log10(((IMAGES - noisy) ** 2).mean((1, 2, 3)))
    numpy.testing.assert_allclose(session.run(image.psnr(IMAGES, noisy, 1.0)), expected, rtol=1e-4)


@pytest.mark.parametrize("padding", ["VALID", "SAME"])
def test_patches(session, padding):
    found = session.run(tf.extract_image_patches(IMAGES, [1, 2, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], padding))
    value = numpy.pad(IMAGES, ((0, 0), (0, 0), (0, 1), (0, 0))) if padding == "SAME" else IMAGES
    rows, columns = (range(0, value.shape[k] - size + 1, 2) for k, size in ((1, 2), (2, 3)))
    expected = [[value[:, r : r + 2, c : c + 3].reshape(2, -1) for c in columns] for r in rows]
    assert (found == numpy.array(expected).transpose(2, 0, 1, 3)).all()


def test_parts_around_boxes_are_within_their_limits():
    boxes = numpy.array([[[0.1, 0.2, 0.5, 0.6], [0.5, 0.5, 0.9, 0.9]]], "f")
    with tf.Graph().as_default(), tf.Session() as session:
        image = tf.placeholder(tf.uint8, [None, None, 3])
        begin, size, box = tf.image.sample_distorted_bounding_box(
            tf.shape(image),
            boxes,
            seed=1,
            min_object_covered=0.5,
            aspect_ratio_range=[0.5, 2.0],
            area_range=[0.1, 0.6],
        )
        cut = tf.slice(image, begin, size)
        seen = set()
        for _ in range(30):
            b, s, found, part = session.run([begin, size, box, cut], {image: numpy.zeros((40, 60, 3))})
            assert part.shape == (s[0], s[1], 3) and b[2] == 0 and s[2] == -1
            numpy.testing.assert_allclose(found[0, 0] * [40, 60, 40, 60], [*b[:2], *(b + s)[:2]], rtol=1e-5)
            assert 0.1 <= s[0] * s[1] / 2400 <= 0.6 and 0.45 <= s[1] / s[0] <= 2.1
            y, x = (
                numpy.clip(numpy.minimum(boxes[0][:, k + 2], found[0, 0, k + 2]), 0, 1)
                - numpy.maximum(boxes[0][:, k], found[0, 0, k])
                for k in (0, 1)
            )
            assert (numpy.maximum(y, 0) * numpy.maximum(x, 0) / 0.16).max() >= 0.499
            seen.add((*b, *s))
        assert len(seen) > 20
        whole = tf.image.sample_distorted_bounding_box([4, 6, 1], boxes, max_attempts=0).size
        assert session.run(whole).tolist() == [4, 6, -1]
        with pytest.raises(tf.errors.InvalidArgumentError, match="no bounding boxes"):
            session.run(tf.image.sample_distorted_bounding_box([4, 6, 1], numpy.zeros((1, 0, 4), "f")).size)


def test_edges_of_boxes_are_drawn():
    images = numpy.zeros((1, 5, 7, 3), "f")
    with tf.Graph().as_default(), tf.Session() as session:
        drawn = session.run(
            tf.image.draw_bounding_boxes(images, [[[0.25, 0.0, 0.75, 0.5], [-1.0, 0.9, 0.6, 2.0]]])
        )[0]
    wanted = numpy.zeros((5, 7, 3), "f")
    wanted[[1, 3], 0:4] = wanted[1:4, [0, 3]] = [1, 1, 0]
    wanted[2, 5:] = wanted[0:3, 5] = [0, 0, 1]
    numpy.testing.assert_array_equal(drawn, wanted)


def test_channels_of_television(session):
    rgb = numpy.array([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.25, 0.5, 0.75]]], numpy.float32)
    yuv = session.run(image.rgb_to_yuv(rgb))
    numpy.testing.assert_allclose(yuv[0, :2, 0], [0.299, 0.587])
    numpy.testing.assert_allclose(yuv[..., 1], 0.492111 * (rgb[..., 2] - yuv[..., 0]), rtol=1e-4)
    numpy.testing.assert_allclose(session.run(image.yuv_to_rgb(yuv)), rgb, atol=1e-6)
    numpy.testing.assert_allclose(session.run(image.yiq_to_rgb(image.rgb_to_yiq(rgb))), rgb, atol=1e-6)


def test_glimpses_are_windows_around_points():
    images = numpy.random.default_rng(0).standard_normal((2, 6, 7, 2)).astype(numpy.float32)
    points = [[0.0, 0.0], [0.5, 1.0]]  # the middle, and a window of which the last two columns are outside
    with tf.Session() as session:
        found = session.run(tf.image.extract_glimpse(images, [2, 4], points))
    numpy.testing.assert_array_equal(found[0], images[0, 2:4, 1:5])
    numpy.testing.assert_array_equal(found[1, :, :2], images[1, 3:5, 5:7])
    assert ((found[1, :, 2:] >= 0) & (found[1, :, 2:] < 1)).all()
