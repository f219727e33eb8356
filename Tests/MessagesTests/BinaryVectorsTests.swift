// The vectors of protocol/: each message in hex and in JSON, read both ways. Those of a direction are one connection,
// in order.
import Foundation
import HubBytes
import HubMessages
import Testing

@Suite struct BinaryVectors {
  @Test("every vector from a client is what its JSON says, read and written")
  func client() throws {
    var (client, hub) = (BinaryPeer(), BinaryPeer())
    var types: Set<UInt8> = []
    for vector in try Vector.all where vector.isFromClient {
      let meant = try readClient(try #require(vector.message), isValidUTF8: false)
      #expect(try hub.readClient(vector.bytes) == meant, "\(vector.hex)")
      #expect(hex(client.write(meant)) == vector.hex)
      types.insert(min(vector.bytes[0], 0x80))
    }
    #expect(types == Set(1...10).union([0x80]), "one of each type")
  }

  @Test("every vector from the hub is what its JSON says, read and written")
  func server() throws {
    var peer = BinaryPeer()
    var types: Set<UInt8> = []
    for vector in try Vector.all where !vector.isFromClient {
      types.insert(min(vector.bytes[0], 0x80))
      guard let message = vector.message else {
        try checkNames(vector, &peer)
        continue
      }
      let meant = try readServer(message, time: .unixMilliseconds)
      if let (handle, names) = vector.naming, case .reply(.subscribed(let answer)) = meant.message {
        peer.naming[answer.channel] = (handle, names)
      }
      #expect(try peer.readServer(vector.bytes) == meant, "\(vector.hex)")
      #expect(hex(peer.write(meant)) == vector.hex)
    }
    #expect(types == Set(1...8).union(16...25).union([0x80]), "one of each type")
  }

  private func checkNames(_ vector: Vector, _ peer: inout BinaryPeer) throws {
    let (handle, names) = try #require(vector.naming)
    let channel = try #require(peer.naming.first { $0.value.handle == handle }?.key)
    peer.naming[channel] = (handle, names)
    var buffer = ByteBuffer()
    BinaryWriter.write(names, handle: handle, into: &buffer)
    #expect(hex(buffer.array()) == vector.hex)
    #expect(try peer.readServer(vector.bytes) == nil)
  }
}

/// One line of protocol/binary-vectors.ndjson.
private struct Vector {
  var isFromClient: Bool
  var hex: String
  var bytes: [UInt8]
  /// With `subscribed` and `names`.
  var naming: (handle: UInt32, names: ImpliedNames)?
  /// Nil for `names`.
  var message: [UInt8]?

  static var all: [Vector] {
    get throws {
      let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
      let text = try String(contentsOf: root.appending(path: "protocol/binary-vectors.ndjson"), encoding: .utf8)
      return try text.split(separator: "\n").map { try Vector(String($0)) }
    }
  }

  private init(_ line: String) throws {
    guard let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
      let direction = object["direction"] as? String, let hex = object["hex"] as? String
    else { throw Unexpected() }
    isFromClient = direction == "client"
    self.hex = hex
    bytes = try MessagesTests.bytes(hex: hex)
    if let handle = object["handle"] as? Int, let said = object["names"] as? [String: Any] {
      let names = ImpliedNames(
        driverID: (said["driverId"] as? String).flatMap { Identifier($0) },
        tripID: (said["tripId"] as? String).flatMap { Identifier($0) },
        lagMilliseconds: Int64(said["lag"] as? Int ?? 0))
      naming = (UInt32(handle), names)
    }
    // The text itself, not what Foundation makes of it: it comes last in the line.
    guard let start = line.range(of: #","message":"#) else { return }
    message = Array(line[start.upperBound...].dropLast().utf8)
  }
}
