"""Input pipelines: ``tf.data``."""

from twofold.static.datasets import Dataset as Dataset
from twofold.static.datasets import Iterator as Iterator
from twofold.static.file_datasets import TextLineDataset as TextLineDataset
from twofold.static.file_datasets import TFRecordDataset as TFRecordDataset
