"""The positions inside TensorFlow that programs import from."""
