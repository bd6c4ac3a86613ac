"""Moving bytes: one narrow interface, two implementations, no dialect."""

from woollama.core.transport.base import NO_LIMITS, Timeouts, Transport, WireResponse

__all__ = ["NO_LIMITS", "Timeouts", "Transport", "WireResponse"]
