"""Requests for every method of the contract, made by chance and then bent."""

import random
from typing import Any, NamedTuple

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from memoryd.rpc.server import SERVICES

_WORDS = (
    "",
    "s1",
    "rollup-day",
    "toc:day:2026-06-01",
    "anchor",
    "ä\0b",
    "../..",
    "*",
    "(a OR",
    "%s",
)
_NUMBERS = (0, 1, -1, 2, 10, 1000, 2**31 - 1, -(2**31), 1_780_308_000_000)
_WIDE = (2**63 - 1, -(2**63))
_DEPTH = 3
# each sets the whole daemon to work for a while
HEAVY = ("RebuildToc", "RebuildIndex", "RunJob", "Backup", "Verify", "Compact", "Erase")
_HEAVY_SHARE = 0.002


class Method(NamedTuple):
    """One method of the wire contract."""

    path: str
    request: type[Message]
    streams: bool

    @property
    def name(self) -> str:
        """The method without its service."""
        return self.path.rpartition("/")[2]


def methods() -> list[Method]:
    """Every method of every service."""
    pool = descriptor_pool.Default()
    services = [pool.FindServiceByName(name) for name in SERVICES]
    return [
        Method(
            f"/{service.full_name}/{method.name}",
            GetMessageClass(method.input_type),
            method.server_streaming,
        )
        for service in services
        for method in service.methods
    ]


def draw(chance: random.Random, known: list[Method]) -> Method:
    """A method; one that is heavy but seldom."""
    light = [method for method in known if method.name not in HEAVY]
    heavy = [method for method in known if method.name in HEAVY]
    return chance.choice(heavy if heavy and chance.random() < _HEAVY_SHARE else light)


def bent(chance: random.Random, kind: type[Message]) -> bytes:
    """The bytes of a request, mostly with something wrong with them."""
    message = kind()
    _fill(message, chance, _DEPTH)
    data = bytearray(message.SerializeToString())
    for _ in range(chance.choice((0, 0, 0, 1, 1, 2, 5))):
        _bend(data, chance)
    return bytes(data)


def _bend(data: bytearray, chance: random.Random) -> None:
    place = chance.randrange(len(data) + 1)
    how = chance.randrange(6)
    if how == 0 and data:
        data[place % len(data)] ^= 1 << chance.randrange(8)
    elif how == 1:
        data[place:place] = chance.randbytes(chance.randrange(1, 20))
    elif how == 2:
        del data[place : place + chance.randrange(1, 20)]
    elif how == 3:
        data[place:place] = b"\xff" * chance.choice((1, 9, 10, 11))
    elif how == 4:
        data += data[place : place + 200]
    else:
        del data[place:]


def _fill(message: Message, chance: random.Random, depth: int) -> None:
    for field in message.DESCRIPTOR.fields:
        if chance.random() < 0.5:
            continue
        target: Any = getattr(message, field.name)
        if _is_map(field):
            _fill_map(target, field, chance)
        elif field.is_repeated:
            for _ in range(chance.choice((0, 1, 2, 5))):
                if field.message_type is None:
                    target.append(_scalar(field, chance))
                elif depth:
                    _fill(target.add(), chance, depth - 1)
        elif field.message_type is not None:
            if depth:
                target.SetInParent()
                _fill(target, chance, depth - 1)
        else:
            setattr(message, field.name, _scalar(field, chance))


def _is_map(field: Any) -> bool:
    kind = field.message_type
    return kind is not None and bool(kind.GetOptions().map_entry)


def _fill_map(target: Any, field: Any, chance: random.Random) -> None:
    assert field.message_type is not None
    value = field.message_type.fields_by_name["value"]
    if value.message_type is None:
        for _ in range(chance.randrange(3)):
            target[chance.choice(_WORDS)] = _scalar(value, chance)


def _scalar(field: Any, chance: random.Random) -> Any:
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_STRING:
        if field.type == FieldDescriptor.TYPE_BYTES:
            return chance.randbytes(chance.randrange(50))
        return chance.choice(_WORDS) * chance.choice((1, 1, 1, 2, 500))
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return chance.random() < 0.5
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return chance.choice((0, 1, 2, 3, 99))
    if kind in {FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE}:
        return chance.choice((0.0, -1.0, 1e300, float("nan"), float("inf")))
    wide = kind in {FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64}
    number = chance.choice(_NUMBERS + _WIDE if wide else _NUMBERS[:-1])
    unsigned = kind in {FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64}
    return abs(number) if unsigned else number
