"""Elements by index: gathering, scattering, tables of rows, sorting and searching."""
