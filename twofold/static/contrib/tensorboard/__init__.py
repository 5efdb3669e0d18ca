"""What TensorBoard is told besides summaries."""
