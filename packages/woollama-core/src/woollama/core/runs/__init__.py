"""Runs: turns and tool calls until a model is done. Set up at once, then opened and read."""

from woollama.core.runs.loop import Run, open_run
from woollama.core.runs.plan import BeforeTool, RunLimits, RunPlan, plan_run, resolve_inferencer
from woollama.core.runs.toolset import Toolset, offer_tools

__all__ = [
    "BeforeTool",
    "Run",
    "RunLimits",
    "RunPlan",
    "Toolset",
    "offer_tools",
    "open_run",
    "plan_run",
    "resolve_inferencer",
]
