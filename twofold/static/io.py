"""Files, records and serialised tensors under their later names: ``tf.io``."""

from twofold.static.api.namespaces import look_up
from twofold.static.data.example_parsing import FixedLenFeature as FixedLenFeature
from twofold.static.data.example_parsing import FixedLenSequenceFeature as FixedLenSequenceFeature
from twofold.static.data.example_parsing import VarLenFeature as VarLenFeature
from twofold.static.data.example_parsing import parse_example as parse_example
from twofold.static.data.example_parsing import parse_single_example as parse_single_example
from twofold.static.data.readers import decode_csv as decode_csv
from twofold.static.data.sequence_parsing import (
    parse_single_sequence_example as parse_single_sequence_example,
)
from twofold.static.graph_util import write_graph as write_graph
from twofold.static.platform.file_io import gfile as gfile
from twofold.static.python_io import TFRecordCompressionType as TFRecordCompressionType
from twofold.static.python_io import TFRecordOptions as TFRecordOptions
from twofold.static.python_io import TFRecordWriter as TFRecordWriter
from twofold.static.python_io import tf_record_iterator as tf_record_iterator
from twofold.static.strings.string_functions import decode_raw as decode_raw
from twofold.static.strings.string_functions import read_file as read_file

__getattr__, __dir__ = look_up(__name__)
