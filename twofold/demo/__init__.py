"""The demonstration: one network declared both ways, trained to the same bits, and a page that shows it."""
