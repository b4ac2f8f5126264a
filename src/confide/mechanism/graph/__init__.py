"""How much one edge or node changes the patterns of a graph."""
