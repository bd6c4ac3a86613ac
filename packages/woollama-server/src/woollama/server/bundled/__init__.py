"""Files that come with the daemon and hold until a person writes their own."""

from pathlib import Path

__all__ = ["RECIPES"]

RECIPES = Path(__file__).with_name("recipes.toml")
"""The recipes that are there without any configuration."""
