"""CPU time and memory of a server: its process and all descendants, read from /proc."""

import os
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_PROC = Path("/proc")


class Meter:
    """Reads what one process tree has used.

    Attributes:
        peak_bytes: The most resident memory that ``rss_bytes`` has seen.
    """

    def __init__(self, pid: int) -> None:
        """Watch the tree below ``pid``."""
        self._pid = pid
        self.peak_bytes = 0

    def _tree(self) -> list[int]:
        todo, found = [self._pid], list[int]()
        while todo:
            pid = todo.pop()
            found.append(pid)
            for task in _tasks(pid):
                todo += map(int, _read(task / "children").split())
        return found

    def cpu_s(self) -> float:
        """CPU seconds used so far by all processes that still live."""
        return sum(_cpu_s(pid) for pid in self._tree())

    def rss_bytes(self) -> int:
        """Resident memory now, summed over the processes (shared pages count in each)."""
        fields = (_read(_PROC / str(pid) / "statm").split() for pid in self._tree())
        total = sum(int(statm[1]) * _PAGE_BYTES for statm in fields if statm)
        self.peak_bytes = max(self.peak_bytes, total)
        return total


def _cpu_s(pid: int) -> float:
    stat = _read(_PROC / str(pid) / "stat").rpartition(")")[2].split()
    if not stat:
        return 0.0
    coarse = (int(stat[11]) + int(stat[12])) / _TICKS_PER_S
    # `stat` counts whole ticks of 10 ms; schedstat counts ns, but forgets threads that ended.
    fine = sum(int((_read(task / "schedstat").split() or ["0"])[0]) for task in _tasks(pid))
    return max(coarse, fine / 1e9)


def _tasks(pid: int) -> list[Path]:
    try:
        return list((_PROC / str(pid) / "task").iterdir())
    except OSError:
        return []


def _read(path: Path) -> str:
    """The file's text, or nothing when its process is gone."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
