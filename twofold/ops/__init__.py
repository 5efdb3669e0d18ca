"""The operations: one entry each, from which functions, methods, gradients, code and tests are derived.

They stand in folders by family, and what they share beside these. A module is imported when one of its entries or
functions is first looked up; ``twofold.index`` says which. A new module needs no mention anywhere: ``make generated``
finds it.
"""
