"""One strict fake a dialect."""
