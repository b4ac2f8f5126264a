"""What a SQL text makes of the tables that its inner questions release: arithmetic on released numbers alone."""
