"""The graph: types, interned nodes, operation entries, closed graphs, their text form and verifier."""
