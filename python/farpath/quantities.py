"""Quantities: numbers of the base unit that print with a unit, and that are read from text with one."""

from __future__ import annotations

from typing import ClassVar, Self

from . import _farpath


class Quantity(float):
    """A number of a base unit."""

    _kind: ClassVar[str]
    _unit: ClassVar[str]

    def __new__(cls, value: float | str) -> Self:
        if isinstance(value, str):
            value = _farpath.parse(cls._kind, value)
        return super().__new__(cls, value)

    def __str__(self) -> str:
        # Four digits are what an eye compares; the number itself has them all.
        shown = _farpath.show(self._kind, float(f"{float(self):.4g}"))
        return shown if shown is not None else f"{float(self):.4g}{self._unit}"

    @property
    def exact(self) -> str:
        """All of its digits, as an experiment file takes them."""
        number = f"{float(self):.12f}".rstrip("0").rstrip(".")
        return f"{number}{self._unit}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"


class Duration(Quantity):
    """Seconds: `Duration("20 ms")`, `Duration(0.02)`."""

    _kind, _unit = "duration", " s"


class Size(Quantity):
    """Bytes: `Size("64 kB")`."""

    _kind, _unit = "size", " B"


class Rate(Quantity):
    """Bits per second: `Rate("10 Mbit/s")`."""

    _kind, _unit = "rate", " bit/s"


class Share(Quantity):
    """A probability or a share of one: `Share("1 %")`."""

    _kind, _unit = "share", ""

    @property
    def exact(self) -> str:
        # A bare number could be all or one in a hundred: files want the sign.
        return f"{float(self) * 100:.12f}".rstrip("0").rstrip(".") + " %"
