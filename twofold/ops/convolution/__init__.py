"""Windows that move over images: convolutions, pooling, resampling."""
