"""Questions over joins that one unit may change in any number of rows."""
