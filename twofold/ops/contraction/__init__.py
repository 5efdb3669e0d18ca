"""Matrix products and what is written with them."""
