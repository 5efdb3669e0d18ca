"""How a function with TensorFlow's conventions is made from a body: parameters, documentation, other names."""
