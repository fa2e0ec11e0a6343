"""Evaluates the part of CEL that our match conditions use, so that laws can compare them with the rules.

As in the API server, reading an absent field is an error; `||` and `&&` absorb an error that the other side decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

Scope = Mapping[str, Any]
Node = Callable[[Scope], Any]

_TOKEN: Final = re.compile(r"\s*('[^']*'|[A-Za-z_]\w*|&&|\|\||==|!=|[][(){}.,?:!+])")
_METHODS: Final[Mapping[str, Callable[[Any, str], bool | str]]] = {
    "join": lambda items, between: between.join(items),
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "contains": str.__contains__,
    "matches": lambda text, pattern: re.search(pattern, text) is not None,
}


class CelError(Exception):
    """The expression has no value: it reads an absent field."""


@cache
def compiled(expression: str) -> Node:
    parser = _Parser(expression)
    node = parser.choice()
    assert parser.peek() == "", f"left over: {parser.peek()}"
    return node


def evaluate(expression: str, **scope: Any) -> Any:
    return compiled(expression)(scope)


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        assert "".join(self._tokens) == re.sub(r"\s+(?=(?:[^']*'[^']*')*[^']*$)", "", text)
        self._at = 0

    def peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def take(self, wanted: str = "") -> str:
        token = self.peek()
        assert not wanted or token == wanted, f"{token} where {wanted} is expected"
        self._at += 1
        return token

    def accept(self, token: str) -> bool:
        if self.peek() != token:
            return False
        self.take()
        return True

    def choice(self) -> Node:
        condition = self.either()
        if not self.accept("?"):
            return condition
        yes = self.choice()
        self.take(":")
        no = self.choice()
        return lambda scope: yes(scope) if condition(scope) else no(scope)

    def either(self) -> Node:
        sides = [self.both()]
        while self.accept("||"):
            sides.append(self.both())
        return sides[0] if len(sides) == 1 else lambda scope: _decided(sides, scope, by=True)

    def both(self) -> Node:
        sides = [self.comparison()]
        while self.accept("&&"):
            sides.append(self.comparison())
        return sides[0] if len(sides) == 1 else lambda scope: _decided(sides, scope, by=False)

    def comparison(self) -> Node:
        left = self.sum()
        operator = self.peek()
        if operator not in ("==", "!=", "in"):
            return left
        self.take()
        right = self.sum()
        if operator == "in":
            return lambda scope: left(scope) in right(scope)
        return lambda scope: (left(scope) == right(scope)) is (operator == "==")

    def sum(self) -> Node:
        node = self.unary()
        while self.accept("+"):
            node = _added(node, self.unary())
        return node

    def unary(self) -> Node:
        if self.accept("!"):
            inner = self.unary()
            return lambda scope: not inner(scope)
        return self.member()

    def member(self) -> Node:
        node = self.primary()
        while self.accept("."):
            name = self.take()
            node = self.call(node, name) if self.accept("(") else _field(node, name)
        return node

    def call(self, subject: Node, name: str) -> Node:
        if name in ("exists", "filter"):
            return self.loop(subject, name)
        argument = self.choice()
        self.take(")")
        return lambda scope: _METHODS[name](subject(scope), argument(scope))

    def loop(self, subject: Node, name: str) -> Node:
        variable = self.take()
        self.take(",")
        test = self.choice()
        self.take(")")

        def found(scope: Scope) -> list[Any]:
            return [each for each in subject(scope) if _decided([test], {**scope, variable: each}, by=True)]

        return found if name == "filter" else lambda scope: bool(found(scope))

    def primary(self) -> Node:
        token = self.take()
        if token == "(":
            inner = self.choice()
            self.take(")")
            return inner
        if token == "[":
            parts = self.several("]")
            return lambda scope: [part(scope) for part in parts]
        if token == "{":
            self.take("}")
            return lambda _: {}
        if token.startswith("'"):
            return lambda _: token[1:-1]
        if token == "has":
            return self.presence()
        return (lambda _: None) if token == "null" else lambda scope: scope[token]

    def several(self, end: str) -> list[Node]:
        parts: list[Node] = []
        while not self.accept(end):
            parts.append(self.choice())
            self.accept(",")
        return parts

    def presence(self) -> Node:
        self.take("(")
        node = self.primary()
        self.take(".")
        name = self.take()
        while self.accept("."):
            node, name = _field(node, name), self.take()
        self.take(")")
        return lambda scope: _is_present(node(scope).get(name))


def _added(left: Node, right: Node) -> Node:
    return lambda scope: left(scope) + right(scope)


def _field(node: Node, name: str) -> Node:
    def read(scope: Scope) -> Any:
        found = node(scope)
        if not isinstance(found, Mapping) or name not in found:
            raise CelError(name)
        return found[name]

    return read


def _is_present(value: Any) -> bool:
    """Returns whether a field is set: the API server's objects leave out what is empty."""
    return value is not None and value not in ("", [], {})


def _decided(sides: list[Node], scope: Scope, *, by: bool) -> bool:
    error = None
    for side in sides:
        try:
            if bool(side(scope)) is by:
                return by
        except CelError as found:
            error = found
    if error is not None:
        raise error
    return not by
