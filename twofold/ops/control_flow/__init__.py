"""Operations that run graphs or the user's functions."""
