"""The rate of calls that a server takes, learnt from those that it refuses (429)."""

from __future__ import annotations

import math
import threading
from collections import deque
from dataclasses import dataclass

from graphrag_pipeline.llm.options import LlmOptions

_FIRST, _OPENING, _OPEN = 25.0, 1.1, 1e5
_LAST, _RECENT = 3, 8
_LONGEST_GAP = 15.0
_GAPS_IN_FIRST, _GAPS_BEFORE_BELIEF = 4, 4
_SHORT_WAIT = 0.25
_DEBT, _MOST_DEBT, _SHARE = 12.0, 15.0, 0.04
_BELOW, _FAR_BELOW, _FALL = 0.95, 0.6, 0.3
_NEAR, _CLIMB, _CLIMB_NEAR, _LOOK_BEYOND = 0.9, 1 / 10, 1 / 40, 1 / 2000
_IDLE, _FORGOTTEN = 1.0, 60.0
_MOMENT = 1e-6


@dataclass(frozen=True, slots=True)
class Sent:
    """A call that was sent: when, as which one, and how fast the last and the recent ones went."""

    at: float
    number: int
    last: float = math.inf
    recent: float | None = None


class Pace:
    """The pace of calls: when the next may go. Times are seconds of one clock.

    Nothing is known of a server at first, and calls go ever faster. Once it refuses some, they go
    at the rate at which it let calls through, and climb slowly towards the one it refused: no
    further while it still refuses more than one in twenty-five. While it lets nothing through, one
    call is tried at a time, each after twice the wait.

    A wait that the server asks for is kept by all calls, unless some get through meanwhile: many
    servers ask for the same seconds however soon they have room. So single calls are tried early
    until none has got through for a while; from then on one is, halfway.
    """

    @classmethod
    def of(cls, options: LlmOptions) -> Pace:
        """Return what this process has learnt of a server's models."""
        key = (options.endpoint, options.model, options.embedding_model, options.retry_seconds)
        return _LEARNT.setdefault(key, cls(options.retry_seconds))

    def __init__(self, first_gap: float = 0.5) -> None:
        self._first_gap = max(first_gap / _GAPS_IN_FIRST, _MOMENT)
        self._belief = _GAPS_BEFORE_BELIEF * first_gap
        self._lock = threading.Lock()
        self._next = 0.0
        self._forget()

    def _forget(self) -> None:
        self._rate = _FIRST
        self._refused_rate = self._learnt_rate = math.inf
        self._debt = 0.0
        self._sent = self._refused_since = self._barren = 0
        self._emptied = Sent(-math.inf, 0)
        self._resumed = self._changed = -math.inf
        self._recent: deque[float] = deque(maxlen=_RECENT)
        self._through = self._span = 0.0
        self._is_honest = self._lets_through = False

    def wait(self, now: float) -> float:
        """Return the seconds until the next call may go."""
        return self._next - now

    def shut_for(self, now: float) -> float:
        """Return the seconds for which nothing has got through, 0 while something does."""
        return now - self._emptied.at if self._barren else 0.0

    def send(self, now: float) -> Sent:
        """Take note of a call that goes now."""
        with self._lock:
            idle = now - self._next
            if idle > _FORGOTTEN:
                self._forget()
            self._sent += 1
            if math.isinf(self._emptied.at) or (idle > _IDLE and not self._barren):
                self._emptied, self._refused_since = Sent(now, self._sent), 0
                self._recent.clear()
            if self._resumed < self._changed:
                self._resumed = now
            if math.isinf(self._refused_rate):
                self._rate = min(self._rate * _OPENING, _OPEN)
            elif idle < 1 / self._rate:
                self._climb(now)
            self._next = max(now, self._next) + 1 / self._rate
            call = Sent(now, self._sent, *self._speeds(now))
            self._recent.append(now)
        return call

    def passed(self, call: Sent) -> None:
        """Take note of a call that was not refused."""
        self._lets_through = True
        if call.at > self._changed:
            self._is_honest = False

    def refused(self, call: Sent, now: float, asked: float | None = None) -> None:
        """Take note of a call that was refused, and of the seconds the server asks to wait."""
        with self._lock:
            self._debt = min(self._debt + 1, _MOST_DEBT)
            # What was sent before the last refusal was known says nothing more.
            if call.at > self._changed:
                self._slow_down(call, now)
            self._refused_since += 1
            if asked:
                self._obey(now, asked)

    def _speeds(self, now: float) -> tuple[float, float | None]:
        times = list(self._recent)
        last = times[-_LAST:]
        speed = len(last) / max(now - last[0], _MOMENT) if last else math.inf
        return speed, len(times) / max(now - times[0], _MOMENT) if len(times) == _RECENT else None

    def _climb(self, now: float) -> None:
        if self._barren:
            # What got through before and while nothing did, in all that time, is sustainable.
            usual = self._through / max(self._span + now - self._emptied.at, _MOMENT)
            self._refused_rate = min(self._refused_rate, 2 * max(usual, self._rate))
            if self._rate < usual:
                self._rate = min(2 * self._rate, usual)
                return
        self._debt = max(0.0, self._debt - _SHARE)
        if self._debt <= _DEBT:
            since = self._sent - self._emptied.number
            most = self._refused_rate * (1 + since * _LOOK_BEYOND)
            is_near = self._rate > _NEAR * self._refused_rate
            self._rate += max(0.0, most - self._rate) * (_CLIMB_NEAR if is_near else _CLIMB)
            self._refused_rate = max(self._refused_rate, self._rate)

    def _slow_down(self, call: Sent, now: float) -> None:
        is_first = math.isinf(self._refused_rate)
        through = call.number - self._emptied.number - self._refused_since
        if through > 0:
            self._lets_through = True
            self._learn(call, through, is_first=is_first)
        else:
            if not self._barren:
                self._refused_rate = min(self._refused_rate, self._learnt_rate, self._rate)
            self._barren += 1
            gap = min(_LONGEST_GAP, self._first_gap * 2 ** (self._barren - 1))
            self._rate = min(self._rate / 2, 1 / gap)
        # Those under way are refused, too: it is told by the time that this one took.
        under_way = now - call.at if is_first or self._barren else 0.0
        if is_first:
            # Faster than refusals come back would be blind.
            self._rate = min(self._rate, 1 / max(under_way, _MOMENT))
        self._changed = now
        self._next = now + max(1 / self._rate, under_way)

    def _learn(self, call: Sent, through: int, *, is_first: bool) -> None:
        """Go on at what got through since the server refused the last time."""
        span = max(call.at - self._emptied.at, _MOMENT)
        self._through = through + self._through / 2
        self._span = span + self._span / 2
        rate = min(self._rate, call.last) if is_first else self._rate
        lately = through / max(call.at - max(self._emptied.at, self._resumed), _MOMENT)
        is_short = call.recent is None or through < _RECENT
        if call.recent is not None and not is_short:
            lately = math.sqrt(call.recent * through / span)
        if is_first:
            lately = min(lately, max(through / span, 1 / self._first_gap))
        self._refused_rate = min(rate, 2 * lately) if is_first else rate
        least = 0.0 if is_first else _FALL * rate
        self._rate = min((_FAR_BELOW if is_short else _BELOW) * rate, max(lately, least))
        self._learnt_rate = self._rate
        self._emptied, self._refused_since, self._barren = call, 0, 0

    def _obey(self, now: float, asked: float) -> None:
        if self.shut_for(now) > self._belief:
            self._is_honest = True
        if asked <= _SHORT_WAIT or not self._lets_through or (self._is_honest and self._barren):
            self._next = max(self._next, now + asked)
        elif self._is_honest:
            self._next = max(self._next, now + asked / 2)


_LEARNT: dict[tuple[object, ...], Pace] = {}
