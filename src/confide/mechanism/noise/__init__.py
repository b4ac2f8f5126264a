"""Random bits, laws of integer noise, and exact draws from them."""
