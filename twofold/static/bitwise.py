"""Bits of integers: ``tf.bitwise``."""

from twofold.static.api.aliases import renamed

bitwise_and = renamed("BitwiseAnd", "bitwise_and", "x y")
bitwise_or = renamed("BitwiseOr", "bitwise_or", "x y")
bitwise_xor = renamed("BitwiseXor", "bitwise_xor", "x y")
invert = renamed("Invert", "bitwise_not")
left_shift = renamed("LeftShift", "bitwise_left_shift", "x y")
right_shift = renamed("RightShift", "bitwise_right_shift", "x y")
