"""Go's `math/rand` with a seed, number by number: published replays shuffle their pods with it.

It is an additive lagged Fibonacci generator, y[n] = y[n-607] + y[n-273] modulo 2^64. The state from the seed is mixed
with the state of one fixed run after 7.8e12 steps. That state is computed here: a step is a multiplication by x modulo
x^607 - x^334 - 1, so that many steps are a power.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from functools import cache
from itertools import accumulate, repeat
from typing import Any, Final

_LENGTH: Final = 607
_TAP: Final = 273
_FIXED_SEED: Final = 1
_FIXED_STEPS: Final = 7_800_000_000_000
_WORD: Final = (1 << 64) - 1
_MAX_INT32: Final = (1 << 31) - 1
_SEED_FOR_ZERO: Final = 89_482_311
_SKIPPED: Final = 20
_COEFFICIENT_BYTES: Final = 18
"""Bytes for the sum of 607 products of two words."""


class GoRandom:
    def __init__(self, seed: int) -> None:
        seeded = _words(seed, 40, 20)
        # Backwards, which is the order in which the generator reads it.
        state = [one ^ other for one, other in zip(seeded, _fixed_state(), strict=True)]
        self._last = [state[(_LENGTH - _TAP - 1 - step) % _LENGTH] for step in range(_LENGTH)]
        self._at = 0

    def int63(self) -> int:
        return self._word() & (_WORD >> 1)

    def intn(self, n: int) -> int:
        """Draws a number below n, which is at most 2^31 - 1."""
        largest = _MAX_INT32 - (1 << 31) % n
        while (value := self.int63() >> 32) > largest:
            pass
        return value % n

    def perm(self, n: int) -> list[int]:
        order = [0] * n
        for at in range(n):
            other = self.intn(at + 1)
            order[at] = order[other]
            order[other] = at
        return order

    def shuffle(self, items: MutableSequence[Any]) -> None:
        for at in range(len(items) - 1, 0, -1):
            other = self._below(at + 1)
            items[at], items[other] = items[other], items[at]

    def _below(self, n: int) -> int:
        """Draws like Go's shuffle: with a multiplication where `intn` divides."""
        product = (self.int63() >> 31) * n
        if product & 0xFFFFFFFF < n:
            fewest = (1 << 32) % n
            while product & 0xFFFFFFFF < fewest:
                product = (self.int63() >> 31) * n
        return product >> 32

    def _word(self) -> int:
        at, last = self._at, self._last
        value = (last[at] + last[at - _TAP]) & _WORD
        last[at] = value
        self._at = (at + 1) % _LENGTH
        return value


def _words(seed: int, high: int, middle: int) -> list[int]:
    """Returns the state from a seed: each word is made of three numbers of a small generator."""
    small = (abs(seed) % _MAX_INT32) * (1 if seed > 0 else -1) % _MAX_INT32 or _SEED_FOR_ZERO
    steps = accumulate(repeat(None, _SKIPPED + 3 * _LENGTH), lambda value, _: value * 48271 % _MAX_INT32, initial=small)
    numbers = list(steps)[_SKIPPED + 1 :]
    return [(numbers[at] << high) ^ (numbers[at + 1] << middle) ^ numbers[at + 2] for at in range(0, 3 * _LENGTH, 3)]


@cache
def _fixed_state() -> list[int]:
    first = _words(_FIXED_SEED, 20, 10)
    series = [first[(_LENGTH - _TAP - 1 - step) % _LENGTH] for step in range(_LENGTH)]
    for _ in range(_LENGTH):
        series.append((series[-_LENGTH] + series[-_TAP]) & _WORD)
    power = _power_of_x(_FIXED_STEPS)
    ended = [
        sum(coefficient * word for coefficient, word in zip(power, series[start:], strict=False)) & _WORD
        for start in range(_LENGTH)
    ]
    return [ended[(_LENGTH - _TAP - 1 - position - _FIXED_STEPS) % _LENGTH] for position in range(_LENGTH)]


def _power_of_x(exponent: int) -> list[int]:
    """Returns the coefficients of the remainder, from x^0 on."""
    power = [1] + [0] * (_LENGTH - 1)
    for bit in f"{exponent:b}":
        power = _remainder(_square(power))
        if bit == "1":
            power = _remainder([0, *power])
    return power


def _square(coefficients: list[int]) -> list[int]:
    """Squares by one multiplication of large integers, with each coefficient in its own digits."""
    packed = int.from_bytes(b"".join(each.to_bytes(_COEFFICIENT_BYTES, "little") for each in coefficients), "little")
    digits = (packed * packed).to_bytes(2 * _LENGTH * _COEFFICIENT_BYTES, "little")
    starts = range(0, len(digits), _COEFFICIENT_BYTES)
    return [int.from_bytes(digits[start : start + 8], "little") for start in starts]


def _remainder(coefficients: list[int]) -> list[int]:
    """x^607 is x^334 + 1."""
    for at in range(len(coefficients) - 1, _LENGTH - 1, -1):
        coefficients[at - _TAP] += coefficients[at]
        coefficients[at - _LENGTH] += coefficients[at]
    return [each & _WORD for each in coefficients[:_LENGTH]]
