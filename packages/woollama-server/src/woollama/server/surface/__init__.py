"""What we serve: client bytes to canonical and back, one module a protocol."""
