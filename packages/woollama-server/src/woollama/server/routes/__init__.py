"""The routes, one module a family; none knows another."""
