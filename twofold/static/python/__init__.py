"""The positions inside TensorFlow that programs import from."""

from twofold.static.python.positions import enter

enter(
    __name__,
    {
        "client.session": "",
        "client.device_lib": "python.devices",
        "lib.io.file_io": "python.files",
        "pywrap_tensorflow": "train",
        "saved_model.builder saved_model.loader saved_model.utils saved_model.signature_def_utils": "saved_model",
        "saved_model.builder_impl saved_model.loader_impl saved_model.simple_save": "saved_model",
        "saved_model.tag_constants": "saved_model.tag_constants",
        "saved_model.signature_constants": "saved_model.signature_constants",
        "saved_model.constants": "saved_model.constants",
        "estimator.estimator": "estimator",
        "data.ops.dataset_ops": "data",
    },
)
