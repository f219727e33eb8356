// TLS 1.3's records by themselves: the RFC's example, every way to break them, and OpenSSL at the other end.

import Bytes
import COpenSSL
import TestSupport
import Testing

@testable import Transport

/// Two ends with the same secrets, without a handshake.
private final class RecordPair {
  private var here: TLSRecords
  private var there: TLSRecords
  private var contexts = TLSCipherContexts()
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 * 1024, alignment: 16)

  init(_ cipher: TLSCipher, seed: UInt64 = 1) {
    var random = SplitMix64(seed: seed)
    func secret() -> TLSSecret {
      var secret = TLSSecret(repeating: 0)
      for index in 0..<48 { secret[index] = UInt8(truncatingIfNeeded: random.next()) }
      return secret
    }
    let (up, down) = (secret(), secret())
    here = TLSRecords(
      cipher, reading: TLSDirection(cipher, down, sequence: 0), writing: TLSDirection(cipher, up, sequence: 0))
    there = TLSRecords(
      cipher, reading: TLSDirection(cipher, up, sequence: 0), writing: TLSDirection(cipher, down, sequence: 0))
  }

  deinit { buffer.deallocate() }

  func seal(_ content: TLSRecords.Content, _ bytes: [UInt8]) -> [UInt8] {
    var output = ByteBuffer()
    bytes.withUnsafeBytes { here.seal(content, $0, &contexts, into: &output) }
    return output.array()
  }

  /// Seals an inner plaintext as it is, its type and its zeros included.
  func seal(raw inner: [UInt8]) -> [UInt8] {
    var output = ByteBuffer()
    inner.dropLast().withUnsafeBytes { here.seal(type: inner.last!, $0, &contexts, into: &output) }
    return output.array()
  }

  func sealKeyUpdate() -> [UInt8] {
    var output = ByteBuffer()
    here.sealKeyUpdate(&contexts, into: &output)
    return output.array()
  }

  func open(_ record: [UInt8]) -> TLSRecords.Opened {
    record.withUnsafeBytes { there.open($0, &contexts, into: buffer) }
  }

  func data(_ count: Int) -> [UInt8] { Array(buffer[..<count]) }
}

private func bytes(_ hexadecimal: String) -> [UInt8] {
  hexadecimal.split { $0 == " " || $0 == "\n" }.map { UInt8($0, radix: 16)! }
}

private func secret(_ hexadecimal: String) -> TLSSecret {
  var secret = TLSSecret(repeating: 0)
  for (index, byte) in bytes(hexadecimal).enumerated() { secret[index] = byte }
  return secret
}

@Suite struct `TLS records` {
  @Test func `the application data of RFC 8448's first example, to the byte`() {
    // §3: client_application_traffic_secret_0, and the client's record of 00 01 … 31.
    let client = secret(
      "9e 40 64 6c e7 9a 7f 9d c0 5a f8 88 9b ce 65 52 87 5a fa 0b 06 df 00 87 f7 92 eb b7 c1 75 04 a5")
    let expected = bytes(
      """
      17 03 03 00 43 a2 3f 70 54 b6 2c 94 d0 af fa fe 82 28 ba 55 cb ef ac ea 42 f9 14 aa 66 bc ab 3f 2b 98 19 a8 a5 b4 6b
      39 5b d5 4a 9a 20 44 1e 2b 62 97 4e 1f 5a 62 92 a2 97 70 14 bd 1e 3d ea e6 3a ee bb 21 69 49 15 e4
      """)
    var contexts = TLSCipherContexts()
    var writer = TLSRecords(
      .aes128, reading: TLSDirection(.aes128, client, sequence: 0), writing: TLSDirection(.aes128, client, sequence: 0))
    var output = ByteBuffer()
    let payload = [UInt8](0..<50)
    payload.withUnsafeBytes { writer.seal(.applicationData, $0, &contexts, into: &output) }
    #expect(output.array() == expected)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1024, alignment: 16)
    defer { buffer.deallocate() }
    let opened = expected.withUnsafeBytes { writer.open($0, &contexts, into: buffer) }
    #expect(opened == .data(50))
    #expect(buffer[..<50].elementsEqual(payload))
    // The example's next record is the client's close_notify.
    output.removeAll()
    writer.sealAlert(0, &contexts, into: &output)
    #expect(
      output.array()
        == bytes("17 03 03 00 13 c9 87 27 60 65 56 66 b7 4d 7f f1 15 3e fd 6d b6 d0 b0 e3"))
  }

  @Test(arguments: TLSCipher.allCases)
  func `what is sealed is opened, of every size, over many changes of keys`(cipher: TLSCipher) {
    let pair = RecordPair(cipher)
    for (round, size) in [0, 1, 15, 16, 17, 1000, 16_383, 16_384].enumerated() {
      for step in 0..<3 {
        let payload = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ round &+ step) }
        #expect(pair.open(pair.seal(.applicationData, payload)) == .data(size))
        #expect(pair.data(size) == payload)
      }
      #expect(pair.open(pair.sealKeyUpdate()) == .keyUpdate(isRequested: false))
    }
  }

  @Test(arguments: TLSCipher.allCases)
  func `a record with any bit changed, twice, or too early is refused`(cipher: TLSCipher) {
    let payload = Array("position".utf8)
    let size = RecordPair(cipher).seal(.applicationData, payload).count
    for bit in 0..<size * 8 {
      let pair = RecordPair(cipher)
      var record = pair.seal(.applicationData, payload)
      record[bit / 8] ^= 1 << UInt8(bit % 8)
      guard case .fault = pair.open(record) else {
        Issue.record("bit \(bit) may be changed")
        continue
      }
    }
    let pair = RecordPair(cipher)
    let (first, second) = (pair.seal(.applicationData, payload), pair.seal(.applicationData, payload))
    #expect(pair.open(second) == .fault(20))
    let again = RecordPair(cipher)
    #expect(again.open(first) == .data(payload.count))
    #expect(again.open(first) == .fault(20))
    #expect(RecordPair(cipher, seed: 2).open(first) == .fault(20), "another connection's")
  }

  @Test func `what a client may not say gets the alert that the RFC asks for`() {
    func opened(_ content: TLSRecords.Content, _ bytes: [UInt8]) -> TLSRecords.Opened {
      let pair = RecordPair(.aes128)
      return pair.open(pair.seal(content, bytes))
    }
    #expect(opened(.alert, [1, 0]) == .goodbye)
    #expect(opened(.alert, [2, 40]) == .alert(40))
    #expect(opened(.alert, [1, 90]) == .nothing)
    for bytes: [UInt8] in [[], [1], [1, 0, 1, 0]] { #expect(opened(.alert, bytes) == .fault(50)) }
    #expect(opened(.handshake, [24, 0, 0, 1, 0]) == .keyUpdate(isRequested: false))
    #expect(opened(.handshake, [24, 0, 0, 1, 1]) == .keyUpdate(isRequested: true))
    #expect(opened(.handshake, [24, 0, 0, 1, 2]) == .fault(47))
    for bytes: [UInt8] in [
      [], [24], [24, 0, 0, 1], [24, 0, 0, 0], [24, 0, 0, 2, 0, 0], [24, 0, 0, 1, 0, 24, 0, 0, 1, 0], [1, 0, 0, 1, 0],
      [24, 1, 0, 1, 0], [24, 0, 1, 1, 0],
    ] {
      #expect(opened(.handshake, bytes) == .fault(10), "\(bytes)")
    }
    let pair = RecordPair(.aes128)
    #expect(pair.open([20, 3, 3, 0, 1, 1]) == .fault(10), "change_cipher_spec after the handshake")
    #expect(pair.open([21, 3, 3, 0, 2, 1, 0]) == .fault(10), "an alert in the clear")
    #expect(pair.open([23, 3, 3, 0, 0]) == .fault(20))
    #expect(pair.open([23, 3, 3, 0, 16] + [UInt8](repeating: 0, count: 16)) == .fault(20))
    #expect(pair.open([23, 3, 3, 0x41, 0x01] + [UInt8](repeating: 0, count: 16_641)) == .fault(22))
  }

  @Test func `padding is taken off, and nothing but padding is refused`() {
    let pair = RecordPair(.aes256)
    var inner = Array("x".utf8) + [TLSRecords.Content.applicationData.rawValue]
    inner += [UInt8](repeating: 0, count: 100)
    #expect(pair.open(pair.seal(raw: inner)) == .data(1))
    #expect(pair.data(1) == Array("x".utf8))
    #expect(pair.open(pair.seal(raw: [0, 0, 0])) == .fault(10))
    #expect(pair.open(pair.seal(raw: [1, 99])) == .fault(10), "no type that there is")
    #expect(pair.open(pair.seal(raw: [UInt8](repeating: 1, count: 16_385) + [23])) == .fault(22))
  }

  @Test(arguments: ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"])
  func `after the handshake a server needs no SSL, whatever the cipher and the padding`(cipher: String) throws {
    var limits = EventLoopLimits()
    limits.tlsRecordsPerKey = 5
    let pair = try Pair(tls: makeServer(), server: limits)
    let client = try makeClient(TLS1_3_VERSION)
    SSL_CTX_set_ciphersuites(client.context.raw, cipher)
    SSL_CTX_set_block_padding(client.context.raw, 512)
    let (atClient, atServer) = try pair.connect(TLSPeer(client, name: "localhost"))
    let hasTakenOver = pair.server.tls.pointer(atServer.slot).pointee.hasTakenOver
    #expect(hasTakenOver)
    for round in 1...40 {
      pair.atClient.send([UInt8](repeating: 1, count: 300), to: atClient)
      pair.atServer.send([UInt8](repeating: 2, count: 300), to: atServer)
      pair.turn(until: {
        pair.atServer.received[atServer]?.count == round * 300 && pair.atClient.received[atClient]?.count == round * 300
      })
    }
    pair.server.close(atServer)
    pair.turn(until: { pair.atClient.closed[atClient] != nil })
    #expect(pair.atClient.closed[atClient] == .peerClosed)
  }

  @Test func `TLS 1_2 stays with OpenSSL`() throws {
    let pair = try Pair(tls: makeServer())
    let (_, atServer) = try pair.connect(TLSPeer(makeClient(TLS1_2_VERSION), name: "localhost"))
    let hasTakenOver = pair.server.tls.pointer(atServer.slot).pointee.hasTakenOver
    #expect(!hasTakenOver)
  }

  @Test func `the client hears the alert that a broken record brings about`() throws {
    let pair = try Pair(tls: makeServer())
    let client = try HeldConnection(pair, TLSPeer(makeClient(TLS1_3_VERSION), name: "localhost"))
    client.shakeHands()
    var record = client.held.seal(Array("damaged".utf8))
    record[10] ^= 1
    client.send(record)
    client.exchange(until: { client.held.end != .none })
    guard case .failed(let failure) = client.held.end else {
      Issue.record("\(client.held.end)")
      return
    }
    #expect(failure == .alert(20))
    #expect(pair.server.counters.tlsFailures == 1)
  }
}
