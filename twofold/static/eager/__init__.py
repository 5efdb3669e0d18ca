"""Define-by-run with TensorFlow's names."""
