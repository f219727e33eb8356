// Messages that cost a hub as much as one rider can make them within its rate: the known kinds, which `abuse` sends and
// from which `abuse-search` starts. JSON as text; the same in binary where it has such a message.
import HubBytes
package import HubDeflate
package import HubGeo
package import HubMessages
import HubSimulation
import HubWebSocket

/// How a message travels.
package enum Carrier: String, CaseIterable, Sendable {
  case plain, deflated, binary
}

/// A message as a client sends it: its text or its binary form, before compression and without its frame.
package struct DearMessage: Sendable, Equatable {
  package var name: String
  package var carrier: Carrier
  package var bytes: [UInt8]
  /// What its answer is charged beside, at least.
  package var answerUnits = 0

  package init(_ name: String, _ carrier: Carrier, _ bytes: [UInt8], answerUnits: Int = 0) {
    self.name = name
    self.carrier = carrier
    self.bytes = bytes
    self.answerUnits = answerUnits
  }

  /// What the hub charges for it. What cannot be read counts by its bytes.
  package func units(_ reader: MessageReader) -> Int {
    do throws(MessageError) {
      let message = try bytes.span.withUnsafeBytes { (bytes) throws(MessageError) in
        switch carrier {
        case .plain, .deflated: try reader.readAny(bytes, time: .unixMilliseconds, isValidUTF8: true).message
        case .binary: try BinaryReader.read(bytes, tripBefore: nil).message
        }
      }
      return WorkUnits.of(message, bytes: bytes.count) + answerUnits
    } catch {
      return WorkUnits.of(bytes: bytes.count)
    }
  }

  /// As it goes over the wire.
  package func frame(_ deflater: inout Deflater) -> [UInt8] {
    var payload = ByteBuffer()
    if carrier == .deflated {
      bytes.withUnsafeBytes { deflater.compress($0, into: &payload) }
    } else {
      payload.append(bytes)
    }
    var frame = ByteBuffer()
    payload.withBytes {
      FrameWriter.write(
        carrier == .binary ? .binary : .text, $0, isCompressed: carrier == .deflated, mask: MaskKey(0x1234_5678),
        into: &frame)
    }
    return frame.array()
  }
}

extension DearMessage {
  /// Where the drivers of a dense place are; what is asked for is asked for here.
  package static let place = Coordinate(clampingLatitude: 52.52, wrappingLongitude: 13.405)

  /// Bytes of a message: a little less than a hub takes by default.
  package static let bytes = 256 * 1024 - 1024

  /// What ordinary riders say: the cost of these is what others are compared with.
  package static var ordinary: [DearMessage] {
    let json = [
      ("ping", #""type":"ping","payload":{"sentAt":12.5}"#),
      ("subscribe", #""type":"subscribe","payload":{"channel":"trip:T1"}"#),
      ("unsubscribe", #""type":"unsubscribe","payload":{"channel":"trip:T1"}"#),
      ("nearby", #""type":"query","payload":{"kind":"nearby","latitude":52.6,"longitude":13.6,"limit":5}"#),
      ("trip", #""type":"query","payload":{"kind":"trip","tripId":"T1"}"#),
    ]
    let plain = json.map { DearMessage("ordinary \($0.0)", .plain, envelope($0.1)) }
    return plain + plain.map { DearMessage($0.name, .deflated, $0.bytes) } + plain.compactMap { $0.inBinary }
  }

  /// The dear kinds, each on all carriers that have it.
  package static var known: [DearMessage] {
    let json =
      junk + [
        echo,
        DearMessage(
          "star", .plain, envelope(#""type":"query","payload":{"kind":"within","limit":100,"polygon":\#(star(998))}"#)),
        DearMessage("crowd", .plain, crowd(limit: 100, metres: 5000)),
        DearMessage(
          "route", .plain, envelope(#""type":"query","payload":{"kind":"trip","tripId":"\#(tripWithRoute)"}"#),
          answerUnits: (longRoute.polyline.utf8.count - 16 * 1024) / 4096),
      ] + views + denseViews
    return json + json.map { DearMessage($0.name, .deflated, $0.bytes, answerUnits: $0.answerUnits) }
      + json.compactMap { $0.inBinary }
  }

  /// A trip that has a route of as many places as may be, each written as long as may be.
  package static let tripWithRoute = "dear"
  package static var longRoute: Route {
    let places = (0..<Route.maximumPoints).map { number in
      Coordinate(
        clampingLatitude: number % 2 == 0 ? -80 : 80, wrappingLongitude: Double(number * 7919 % 17000) / 100)
    }
    do throws(Route.Fault) { return try Route(points: places) } catch { preconditionFailure("the route is right") }
  }

  /// Members that nobody reads: an array of arrays, objects, numbers and texts, all that a parser may find dear. No two
  /// are alike: what deflates to less than a 200th the hub does not take.
  private static var junk: [DearMessage] {
    var random = SplitMix64(seed: 5)
    let kinds: [(name: String, values: Int, value: () -> String)] = [
      ("deep", 28, { String(repeating: "[", count: 28) + "\(random.below(1000))" + String(repeating: "]", count: 28) }),
      ("wide", 1, { "\(random.below(10))" }),
      ("names", 256, { "{" + (0..<127).map { "\"n\($0)-\(random.below(100))\":0" }.joined(separator: ",") + "}" }),
      ("numbers", 1, { "1.\(random.below(1 << 31))\(random.below(1 << 31))e-\(random.below(300))" }),
      ("strings", 1, { "\"\\u00\(10 + random.below(90))\"" }),
    ]
    return kinds.map { kind in
      var list: [String] = []
      var count = 0
      // A message has at most 65,000 values and names.
      while count < bytes - 6000, list.count * kind.values < 60_000 {
        list.append(kind.value())
        count += list[list.count - 1].utf8.count + 1
      }
      return DearMessage(
        kind.name, .plain, envelope(#""type":"ping","payload":{},"junk":[\#(list.joined(separator: ","))]"#))
    }
  }

  /// A text that the hub sends back, as long as it may be.
  private static var echo: DearMessage {
    var random = SplitMix64(seed: 6)
    let pieces = (0..<Ping.maximumBytes / 12).map { _ in "é\\u00\(10 + random.below(90))\(random.below(1000))" }
    let text = pieces.joined()
    return DearMessage("echo", .plain, envelope(#""type":"ping","payload":{"text":"\#(text)"}"#))
  }

  /// A map that jumps between two places: all its cells are left, others begun, and each is sent whole.
  private static var views: [DearMessage] {
    [48.1371, 52.52].map { latitude in
      let channel = "nearby:\(latitude),13.405,5000"
      return DearMessage(
        "views", .plain, envelope(#""type":"subscribe","payload":{"channel":"\#(channel)","viewId":"map"}"#))
    }
  }

  /// Views over the dense place, which have many drivers.
  private static var denseViews: [DearMessage] {
    [900, 300].map { metres in
      DearMessage(
        "zoom", .plain,
        envelope(#""type":"subscribe","payload":{"channel":"nearby:52.52,13.405,\#(metres)","viewId":"map"}"#))
    }
  }

  private static func crowd(limit: Int, metres: Int) -> [UInt8] {
    envelope(
      #""type":"query","payload":{"kind":"nearby","latitude":52.52,"longitude":13.405,"radius":\#(metres),"limit":\#(limit)}"#
    )
  }

  /// A polygon with so many spikes, within a rider's reach, as GeoJSON.
  package static func star(_ spikes: Int) -> String {
    let corners = (0..<spikes).map { corner in
      let point = place.destination(
        bearingDegrees: Double(corner) / Double(spikes) * 360, distanceMeters: corner % 2 == 0 ? 3000 : 40)
      return "[\(decimals(point.longitude, 7)),\(decimals(point.latitude, 7))]"
    }
    return #"{"type":"Polygon","coordinates":[[\#((corners + corners.prefix(1)).joined(separator: ","))]]}"#
  }

  private static func envelope(_ members: String) -> [UInt8] {
    Array(#"{\#(members),"timestamp":1763680000123,"messageId":"m1"}"#.utf8)
  }

  /// This message in binary; nil where that has nothing of what makes it dear, or is no message.
  private var inBinary: DearMessage? {
    do throws(MessageError) {
      let envelope = try bytes.span.withUnsafeBytes { (bytes) throws(MessageError) in
        try MessageReader().readAny(bytes, time: .unixMilliseconds, isValidUTF8: true)
      }
      if case .ping = envelope.message, !name.hasPrefix("ordinary") { return nil }
      var buffer = ByteBuffer()
      BinaryWriter.write(
        envelope.message, messageID: envelope.messageID, timestamp: envelope.timestamp, tripBefore: nil, into: &buffer)
      return DearMessage(name, .binary, buffer.array(), answerUnits: answerUnits)
    } catch {
      return nil
    }
  }
}
