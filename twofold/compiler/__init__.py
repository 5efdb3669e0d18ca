"""Graph to program: kernels and buffers of a closed graph, machine code, and what is kept of both."""
