"""The first look at a table: rows, missing values, shapes and commonest values, for one charge."""
