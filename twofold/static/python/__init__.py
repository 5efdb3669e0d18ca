"""The places inside TensorFlow that programs import from."""
