"""A model name and messages in, a reply out."""

__all__ = ["__version__"]

__version__ = "0.7.0"
__woollama__ = "router"
