"""Some messages of locationhub.v1.binary, by protocol/binary.md alone: fixes out, positions in, and what positions need.

Written from the page, not from the hub's code: what it reads and writes shows that the page is enough.
"""

import struct


def base32(number, count):
    """The characters of a geohash, or of a pseudonym."""
    alphabet = "0123456789bcdefghjkmnpqrstuvwxyz"
    return "".join(alphabet[number >> 5 * digit & 31] for digit in reversed(range(count)))


class Input:
    """Bytes from front to back."""

    def __init__(self, message):
        self.message, self.offset = message, 0

    def take(self, count):
        if self.offset + count > len(self.message):
            raise ValueError("the message ends too early")
        self.offset += count
        return self.message[self.offset - count:self.offset]

    def u8(self):
        return self.take(1)[0]

    def number(self, count):
        return int.from_bytes(self.take(count), "little")

    def varint(self):
        value = shift = 0
        while True:
            byte = self.u8()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def zigzag(self):
        value = self.varint()
        return value >> 1 if value & 1 == 0 else -(value + 1) // 2

    def f64(self):
        return struct.unpack("<d", self.take(8))[0]

    def place_degrees(self):
        latitude, longitude = struct.unpack("<ii", self.take(8))
        return latitude / 1e7, longitude / 1e7

    def text(self):
        return self.take(self.u8()).decode()

    def identifier(self):
        length = self.u8()
        if length > 0:
            return self.take(length).decode()
        return "p" + base32(self.number(8), 13)

    def message_id(self):
        head = self.varint()
        return str(head // 2) if head & 1 else self.take(head // 2).decode()

    def channel(self):
        kind = self.u8()
        if kind < 3:
            return ["trip", "driver", "fence"][kind] + ":" + self.identifier()
        if kind == 3:
            count = self.u8()
            return "area:" + base32(self.number((5 * count + 7) // 8), count)
        if kind == 4:
            return "nearby:{},{},{:g}".format(*self.place_degrees(), self.f64())
        if kind == 7:
            return "raw:" + self.identifier()
        if kind in (8, 9):
            name = "box" if kind == 8 else "counts"
            return "{}:{},{},{},{}".format(name, *self.place_degrees(), *self.place_degrees())
        if kind == 10:
            count = self.u8()
            return "counts:{}/{}".format(base32(self.number((5 * count + 7) // 8), count), count + 2)
        return {6: "trips", 11: "stats"}.get(kind, "fleet")

    def names(self):
        flags = self.u8()
        driver = self.identifier() if flags & 1 else None
        trip = self.identifier() if flags & 2 else None
        return driver, trip, self.zigzag()


class Reader:
    """What the hub says on one connection: positions as JSON has them, of other messages their type."""

    TYPES = {
        1: "connected", 2: "subscribed", 3: "unsubscribed", 4: "ack", 5: "pong", 6: "sampling", 7: "error", 8: "result",
        16: "eta_update", 17: "trip_update", 18: "notification", 19: "area_update", 20: "names",
        21: "raw_fix", 22: "counts_update", 23: "stats", 24: "offer", 25: "offer_withdrawn",
    }

    def __init__(self):
        self.hub_time = None
        self.channels = {}
        self.last_channel = None

    def read(self, message):
        message = Input(message)
        kind = message.u8()
        if kind & 0x80:
            return "driver_location", self.position(kind, message)
        kind = self.TYPES.get(kind, "unknown")
        if kind == "names":
            handle = message.varint()
            self.channels[handle] = (self.channels[handle][0], message.names())
        elif kind in ("connected", "subscribed", "unsubscribed", "ack", "pong", "sampling", "error", "result"):
            message.varint()
            self.hub_time = message.number(6)
            if kind == "subscribed":
                self.subscribed(message)
            if kind == "error":
                code, text = message.u8(), message.take(message.varint()).decode()
                return kind, {"code": code, "message": text}
        return kind, {}

    def subscribed(self, message):
        message.message_id()
        channel = self.last_channel = message.channel()
        flags = message.u8()
        message.varint()
        message.text()
        if flags & 2:
            handle = message.varint()
            self.channels[handle] = (channel, message.names())

    def position(self, flags, message):
        channel, (driver, trip, lag) = self.channels[message.varint()]
        more = message.number(1) if flags & 3 == 3 else flags & 3
        if flags & 0x10:
            driver = message.identifier()
            trip = message.identifier() if flags & 0x20 else None
        difference = (message.number(4) - self.hub_time) % 2**32
        published = self.hub_time + (difference if difference < 2**31 else difference - 2**32)
        self.hub_time = max(self.hub_time, published)
        if flags & 0x40:
            lag = message.zigzag()
        age = message.varint()
        payload = {"channel": channel, "driverId": driver}
        if trip is not None:
            payload["tripId"] = trip
        payload["latitude"], payload["longitude"] = message.place_degrees()
        if flags & 0x04:
            payload["heading"] = message.number(2) / 100
        if flags & 0x08:
            payload["speed"] = message.varint() / 100
        payload["accuracy"] = message.varint() / 100
        payload["confidence"] = ["high", "medium", "low"][more & 3]
        payload["timestamp"] = published - lag - age
        if more & 4:
            payload["timeSource"] = "hub"
        payload["age"] = age / 1000
        payload["after"] = message.varint()
        if more & 8:
            payload["status"] = ["available", "unavailable", "background", "on_trip"][more >> 4 & 3]
        return payload


def varint(value):
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(encoded) + bytes([value])


def zigzag(value):
    return varint(2 * value if value >= 0 else -2 * value - 1)


def text(value):
    return bytes([len(value.encode())]) + value.encode()


def head(kind, number, sent):
    return bytes([kind]) + varint(2 * number + 1) + sent.to_bytes(6, "little")


def subscribe(channel, number, sent):
    kind, _, identity = channel.partition(":")
    return head(4, number, sent) + bytes([["trip", "driver", "fence"].index(kind)]) + text(identity) + b"\0"


class Writer:
    """A driver's fixes."""

    def __init__(self):
        self.trip = None

    def location_update(self, payload, number, sent):
        flags, rest = 0x80, b""
        if "accuracy" in payload:
            flags, rest = flags | 1, rest + varint(round(payload["accuracy"] * 100))
        if "heading" in payload:
            flags, rest = flags | 2, rest + round(payload["heading"] * 100).to_bytes(2, "little")
        if "speed" in payload:
            flags, rest = flags | 4, rest + varint(round(payload["speed"] * 100))
        trip, name = payload.get("tripId"), b""
        if trip is not None:
            flags |= 1 << 5 if trip == self.trip else 2 << 5
            name = b"" if trip == self.trip else text(trip)
            self.trip = trip
        place = struct.pack("<ii", round(payload["latitude"] * 1e7), round(payload["longitude"] * 1e7))
        time = payload["timestamp"]
        return bytes([flags]) + varint(2 * number + 1) + name + place + time.to_bytes(6, "little") + zigzag(sent - time) + rest
