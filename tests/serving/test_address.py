from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.address import Address, bind, bound_address, parse_address
from serving.errors import CannotServeError


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8443", Address("127.0.0.1", 8443)),
        ("[::1]:8443", Address("::1", 8443)),
        ("localhost:0", Address("localhost", 0)),
        (":8443", Address("", 8443)),
        (" :65535 ", Address("", 65535)),
    ],
)
def test_the_usual_forms_of_an_address_are_parsed(text: str, address: Address) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "8443", "host", "host:", "host:http", "::1:8443", ":65536", ":-1", ":٣"])
def test_anything_else_is_refused_with_the_forms_that_work(text: str) -> None:
    with pytest.raises(ValueError, match=r"127\.0\.0\.1:8443") as refusal:
        parse_address(text)
    assert f'got "{text}"' in str(refusal.value)


@given(st.ip_addresses(), st.integers(0, 65535))
def test_a_printed_address_is_parsed_to_the_same_address(host: object, port: int) -> None:
    address = Address(str(host), port)
    assert parse_address(str(address)) == address


def test_port_zero_becomes_the_chosen_port() -> None:
    with bind(Address("127.0.0.1", 0), listener="test") as bound:
        assert bound_address(bound).port > 0


def test_without_a_host_every_interface_answers() -> None:
    with bind(Address("", 0), listener="test") as bound:
        socket.create_connection(("127.0.0.1", bound_address(bound).port)).close()


def test_the_error_about_a_used_port_names_the_listener() -> None:
    with bind(Address("127.0.0.1", 0), listener="first") as bound:
        taken = bound_address(bound)
        with pytest.raises(CannotServeError, match=rf"listener second: cannot listen on {taken}: .*in use"):
            bind(taken, listener="second")
