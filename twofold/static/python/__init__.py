"""The positions inside TensorFlow that programs import from."""

from twofold.static.python.positions import enter

_KERAS = (
    "activations backend callbacks constraints datasets initializers layers losses metrics models optimizers "
    "preprocessing preprocessing.sequence regularizers utils"
)

enter(
    __name__,
    {
        "client.session": "session.conversions",
        "client.device_lib": "python.devices",
        "client.timeline": "python.timeline",
        "lib.io.file_io": "python.files",
        "pywrap_tensorflow": "train",
        "saved_model.builder saved_model.loader saved_model.utils saved_model.signature_def_utils": "saved_model",
        "saved_model.builder_impl saved_model.loader_impl saved_model.simple_save": "saved_model",
        "saved_model.tag_constants": "saved_model.tag_constants",
        "saved_model.signature_constants": "saved_model.signature_constants",
        "saved_model.constants": "saved_model.constants",
        "estimator.estimator estimator.model_fn estimator.export estimator.export.export": "estimator",
        "estimator.util": "python.util.function_utils",
        "debug": "debugging",
        "eager.context eager.backprop eager.function eager.core": "eager.gradient_tape",
        "data data.ops.dataset_ops": "data",
        "lib.io.tf_record": "python_io",
        "summary.summary summary.writer.writer": "summary",
        "summary.summary_iterator": "train",
        "estimator.inputs estimator.inputs.inputs estimator.inputs.numpy_io": "estimator.inputs",
        "keras": "keras",
        **{f"keras.{name}": f"keras.{name}" for name in _KERAS.split()},
        "keras.engine keras.engine.base_layer keras.engine.topology": "keras.layers",
    },
)
