"""One address for every model."""
