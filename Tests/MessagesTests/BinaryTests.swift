// Binary messages: every example of protocol/ goes through and comes back, and what is no message is refused.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@Suite struct BinaryMessages {
  private let noon = Timestamp(milliseconds: 1_763_680_000_131)

  @Test("every example from a client reads the same from binary, its numbers rounded to their steps")
  func client() throws {
    for example in try Example.all where example.isFromClient {
      let read = try readClient(example.message, time: example.time, isValidUTF8: false)
      var (client, hub) = (BinaryPeer(), BinaryPeer())
      for _ in 0..<2 {  // the second one finds the trip named
        #expect(try hub.readClient(client.write(read)) == onSteps(read), "\(example)")
      }
    }
  }

  @Test("every example from the hub reads the same from binary, but that state has no number")
  func server() throws {
    for example in try Example.all where !example.isFromClient {
      let read = try readServer(example.message, time: example.time)
      let expected = try withoutNumberOfState(read)
      for names in try Self.names(of: read) {
        var peer = try Self.peer(for: read, names)
        #expect(try peer.readServer(peer.write(read)) == expected, "\(example)")
      }
    }
  }

  /// Nothing agreed on, all of it, and something else.
  private static func names(of envelope: ServerEnvelope) throws -> [ImpliedNames] {
    guard case .publication(let publication) = envelope.message,
      case .driverLocation(let location) = publication.body
    else { return [ImpliedNames()] }
    let lag = location.lagMilliseconds(publishedAt: publication.timestamp)
    return [
      ImpliedNames(),
      ImpliedNames(driverID: location.driverID, tripID: location.tripID, lagMilliseconds: lag),
      ImpliedNames(driverID: Identifier("other"), tripID: Identifier("another"), lagMilliseconds: -7),
    ]
  }

  /// A reader that knows the channel and the time.
  private static func peer(for envelope: ServerEnvelope, _ names: ImpliedNames) throws -> BinaryPeer {
    var peer = BinaryPeer()
    if case .publication(let publication) = envelope.message {
      try peer.name(publication.channel, 300, names, at: publication.timestamp)
    }
    return peer
  }

  @Test("a position has 25 bytes or fewer where its channel is one of 16,384 and its names are agreed on")
  func positionBytes() throws {
    let example = try #require(try Example.all.first { !$0.isFromClient && $0.description.contains("driver_location") })
    let read = try readServer(example.message, time: example.time)
    let names = try Self.names(of: read)[1]
    guard case .publication(let publication) = read.message else { throw Unexpected() }
    for (handle, count) in [(127, 23), (16_383, 24), (2_097_151, 25)] as [(UInt32, Int)] {
      var peer = BinaryPeer()
      try peer.name(publication.channel, handle, names, at: publication.timestamp)
      #expect(peer.write(read).count == count)
    }
  }

  @Test("a fix has 30 bytes or fewer with place, accuracy, heading, speed, altitude and a trip named before")
  func fixBytes() throws {
    let read = try readClient(
      fixPayload(#""tripId":"t","accuracy":4.21,"heading":270.5,"speed":8.3,"altitude":519.2"#))
    var client = BinaryPeer()
    _ = client.write(read)
    let numbered = ClientEnvelope(
      messageID: MessageID(number: 4711), timestamp: read.timestamp, message: read.message)
    #expect(client.write(numbered).count == 28)
    guard case .locationUpdate(var update) = read.message else { throw Unexpected() }
    update.fix.altitude = nil
    let frequent = ClientEnvelope(
      messageID: MessageID(number: 4711), timestamp: read.timestamp, message: .locationUpdate(update))
    #expect(client.write(frequent).count == 25)
  }

  @Test("no truncation of a message is read, and none crashes")
  func truncations() throws {
    for example in try Example.all {
      if example.isFromClient {
        let read = try readClient(example.message, time: example.time, isValidUTF8: false)
        var client = BinaryPeer()
        let message = client.write(read)
        for length in 0..<message.count {
          var hub = BinaryPeer()
          #expect(throws: MessageError.self) { _ = try hub.readClient(Array(message[..<length])) }
        }
      } else {
        let read = try readServer(example.message, time: example.time)
        var peer = try Self.peer(for: read, ImpliedNames())
        let message = peer.write(read)
        for length in 0..<message.count {
          #expect(throws: MessageError.self) { _ = try peer.readServer(Array(message[..<length])) }
        }
      }
    }
  }

  @Test("what stands behind the last member is passed over, for a newer peer may have more to say")
  func surplus() throws {
    for example in try Example.all {
      if example.isFromClient {
        let read = try readClient(example.message, time: example.time, isValidUTF8: false)
        var (client, hub) = (BinaryPeer(), BinaryPeer())
        #expect(try hub.readClient(client.write(read) + [1, 2, 3]) == onSteps(read))
      } else {
        let read = try readServer(example.message, time: example.time)
        var peer = try Self.peer(for: read, ImpliedNames())
        #expect(try peer.readServer(peer.write(read) + [1, 2, 3]) == withoutNumberOfState(read))
      }
    }
  }

  @Test("no change of a single byte crashes; what is still read can be written and read again")
  func mutations() throws {
    for example in try Example.all {
      if example.isFromClient {
        var client = BinaryPeer()
        let message = client.write(try readClient(example.message, time: example.time, isValidUTF8: false))
        forEachMutation(of: message) { checkClient($0) }
      } else {
        let read = try readServer(example.message, time: example.time)
        let peer = try Self.peer(for: read, ImpliedNames())
        forEachMutation(of: peer.write(read)) { checkServer($0, peer) }
      }
    }
  }

  @Test("random bytes are refused or read, and never crash")
  func garbage() throws {
    var random = SplitMix64(seed: 11)
    var peer = BinaryPeer()
    try peer.name(.fleet, 1, at: noon)
    for _ in 0..<20_000 {
      var message = (0..<Int.random(in: 0...60, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
      if !message.isEmpty, Bool.random(using: &random) { message[0] = UInt8.random(in: 0...20, using: &random) }
      checkClient(message)
      checkServer(message, peer)
    }
  }

  private func forEachMutation(of message: [UInt8], _ body: ([UInt8]) -> Void) {
    for position in message.indices {
      for bit in 0..<8 {
        var changed = message
        changed[position] ^= 1 << UInt8(bit)
        body(changed)
      }
      var changed = message
      changed[position] = 0xFF
      body(changed)
    }
  }

  private func checkClient(_ message: [UInt8]) {
    var (hub, client, again) = (BinaryPeer(), BinaryPeer(), BinaryPeer())
    do throws(MessageError) {
      var read = try hub.readClient(message)
      if case .locationBatch(var batch) = read.message {
        batch.fixes = batch.fixes.map { $0.flatMapError { _ in .failure(.badMessage) } }
        read.message = .locationBatch(batch)
      }
      let written = client.write(read)
      // A value beyond what a double counts exactly is written as the largest.
      if written.count <= message.count { #expect(throws: Never.self) { _ = try again.readClient(written) } }
    } catch {
      #expect(!error.text.isEmpty)
    }
  }

  private func checkServer(_ message: [UInt8], _ peer: BinaryPeer) {
    var peer = peer
    do throws(MessageError) {
      guard let read = try peer.readServer(message) else { return }
      _ = peer.write(read)
    } catch {
      #expect(error.code == .badMessage || error.code.isBadMessage || error.code == .unknownChannel)
    }
  }
}
