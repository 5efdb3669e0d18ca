"""Messages of TensorFlow's schemas: graphs, examples, summaries."""
