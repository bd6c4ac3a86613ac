"""The door for extensions: what one is, how it is found, checked and run."""
