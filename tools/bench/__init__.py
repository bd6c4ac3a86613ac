"""How fast the router is, next to its peers and to the limits; see README.md."""
