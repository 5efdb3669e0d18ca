"""Variables: scopes that share them, parts, updates of rows, which have values."""
