"""What a type checker sees of the public names. It is read by basedpyright and mypy, never run."""

from typing import assert_type

import woollama.core

assert_type(woollama.core.__version__, str)
