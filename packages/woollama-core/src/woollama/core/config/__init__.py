"""Configuration files to values, with every problem named by file and place."""
