// The client's end of a socket against the server's half of this module: what was agreed on is what both do.

import HubBytes
import HubDeflate
import HubHTTP
import HubTestSupport
import Testing

@testable import HubWebSocket

/// Both ends of one connection, and what the client saw.
private final class Pair {
  private var client: ClientSocket
  var random = SplitMix64(seed: 7692)
  var answer: [UInt8] = []
  var agreed: DeflateParameters?
  var reader: FrameReader
  var deflater: Deflater?
  var inflater: Inflater?
  var messages: [[UInt8]] = []
  var closeCodes: [CloseCode?] = []
  var isOpen = false

  static let limits = ClientSocketLimits(
    headBytes: 4096, frames: FrameLimits(messageBytes: 100_000),
    inflate: InflateLimits(messageBytes: 100_000, ratio: 200, freeBytes: 1000), pongs: 3)

  init(
    offer: DeflateParameters? = nil, policy: DeflatePolicy? = nil, sharing: MessageCompression? = nil
  ) throws {
    client = ClientSocket(ClientHandshake(nonce: (1, 2), compression: offer), sharing: sharing)
    reader = FrameReader(role: .server)
    var request = ByteBuffer()
    client.writeRequest(host: "x", target: "/", into: &request)
    var parser = RequestParser()
    guard case .request(let head, _) = try request.withBytes({ (raw) throws(HTTPError) in try parser.parse(raw) })
    else { throw HTTPError.malformedStartLine }
    let handshake = try ServerHandshake(head, subprotocols: [], compression: policy)
    var response = ByteBuffer()
    handshake.write(into: &response, subprotocols: [])
    answer = response.array()
    agreed = handshake.compression
    if let agreed, let policy {
      reader = FrameReader(role: .server, allowsCompression: true)
      deflater = Deflater(
        windowBits: policy.compressorWindowBits(agreed), level: 6, memoryLevel: 8,
        takesContextOver: !agreed.serverNoContextTakeover)
      inflater = Inflater(takesContextOver: !agreed.clientNoContextTakeover)
    }
  }

  // What a test asks of the client by way of this, because `#expect` copies what it looks into.
  var isCompressed: Bool { client.isCompressed }
  var maySend: Bool { client.maySend }
  var hasControlFrames: Bool { client.hasControlFrames }
  func close(_ code: CloseCode) -> Bool { client.close(code) }

  /// Bytes to the client, the 101 in front of the first.
  func receive(_ bytes: [UInt8]) throws {
    var bytes = answer + bytes
    answer = []
    try bytes.withUnsafeMutableBytes { buffer in
      var offset = 0
      // Also where it throws: what stands behind an error is dropped.
      defer { #expect(offset == buffer.count) }
      while let event = try client.next(in: buffer, at: &offset, limits: Self.limits) {
        switch event {
        case .opened: isOpen = true
        case .message(_, let payload): messages.append(Array(payload))
        case .close(let code): closeCodes.append(code)
        }
      }
    }
  }

  /// A frame of the server, compressed if that was agreed on.
  func serverFrame(_ message: [UInt8]) -> [UInt8] {
    guard deflater != nil else { return frame(.binary, message, to: .client) }
    var payload = ByteBuffer()
    message.withUnsafeBytes { deflater!.compress($0, into: &payload) }
    return frame(.binary, payload.array(), compressed: true, to: .client)
  }

  /// What the server makes of a message of the client, and how long its frame was.
  func send(_ message: [UInt8], compressedBytes: Int = 0) throws -> (message: [UInt8]?, bytes: Int) {
    var buffer = ByteBuffer()
    buffer.append(0xEE)  // what stands before a message stays
    let payload = FrameWriter.begin(as: .client, in: &buffer)
    buffer.append(message)
    client.finish(
      .binary, payloadAt: payload, compressedBytes: compressedBytes, mask: .random(using: &random), in: &buffer)
    #expect(buffer.withBytes { $0[0] } == 0xEE)
    buffer.removeFirst(1)
    return (try take(&buffer).first, buffer.count)
  }

  /// The messages that the server finds in bytes of the client.
  func take(_ buffer: inout ByteBuffer) throws -> [[UInt8]] {
    var bytes = buffer.array()
    return try bytes.withUnsafeMutableBytes { raw in
      var (offset, found) = (0, [[UInt8]]())
      while let event = try reader.next(in: raw, at: &offset, limits: FrameLimits()) {
        switch event {
        case .message(_, let payload, isCompressed: false): found.append(Array(payload))
        case .message(let kind, let payload, isCompressed: true):
          found.append(Array(try inflater!.inflate(payload, kind, limits: InflateLimits())))
        case .pong(let payload): found.append(Array("pong ".utf8) + Array(payload))
        case .close(let code, reason: _): found.append(Array("close \(code?.rawValue ?? 0)".utf8))
        case .ping: Issue.record("nobody pings")
        }
      }
      return found
    }
  }

  func controlFrames() throws -> [String] {
    var buffer = ByteBuffer()
    client.writeControlFrames(into: &buffer, using: &random)
    return try take(&buffer).map { String(decoding: $0, as: UTF8.self) }
  }
}

private func parameters(_ change: (inout DeflateParameters) -> Void) -> DeflateParameters {
  var parameters = DeflateParameters()
  change(&parameters)
  return parameters
}

/// A message that looks like the others and is none of them.
private func message(_ number: Int, _ random: inout SplitMix64) -> [UInt8] {
  let pad = Int.random(in: 0..<3, using: &random) == 0 ? String(repeating: "x", count: 200 * number) : ""
  return Array(#"{"type":"location_update","payload":{"latitude":37.77\#(number),"pad":"\#(pad)"}}"#.utf8)
}

@Suite struct ClientSocketTests {
  private static let keeping = DeflatePolicy(keepsContexts: true, windowBits: 9...15)

  private static let offers: [DeflateParameters?] = [
    nil, DeflateParameters(), .withoutContexts, parameters { $0.serverNoContextTakeover = true },
    parameters { $0.clientNoContextTakeover = true }, parameters { $0.clientMaxWindowBits = .unspecified },
    parameters { $0.clientMaxWindowBits = .bits(9) }, parameters { $0.serverMaxWindowBits = .bits(10) },
    parameters {
      $0.serverMaxWindowBits = .bits(9)
      $0.clientMaxWindowBits = .bits(10)
      $0.serverNoContextTakeover = true
    },
  ]

  @Test("Interim responses before the 101 are passed over, wherever the bytes are cut, and no more than eight of them")
  func interimResponses() throws {
    func interim(_ count: Int) -> [UInt8] {
      Array(String(repeating: "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", count: count).utf8)
    }
    let whole = interim(2).count + (try Pair().answer.count)
    for cut in 0...whole {
      let pair = try Pair()
      let bytes = interim(2) + pair.answer + pair.serverFrame([1, 2, 3])
      pair.answer = []
      try pair.receive(Array(bytes[..<cut]))
      try pair.receive(Array(bytes[cut...]))
      #expect(pair.isOpen && pair.messages == [[1, 2, 3]], "cut at \(cut)")
    }
    let most = try Pair()
    most.answer = interim(8) + most.answer
    try most.receive([])
    #expect(most.isOpen)
    let over = try Pair()
    over.answer = interim(9) + over.answer
    #expect(throws: ClientSocketError.self) { try over.receive([]) }
  }

  @Test("Whatever was agreed on, messages come through both ways, and the next ones too") func everyAgreement() throws {
    for offer in Self.offers {
      for policy in [nil, Self.keeping, DeflatePolicy(keepsContexts: false, windowBits: 12...12)] {
        let pair = try Pair(offer: offer, policy: policy, sharing: .shared())
        try pair.receive([])
        #expect(pair.isOpen && pair.isCompressed == (pair.agreed != nil))
        var random = SplitMix64(seed: 1)
        for number in 0..<20 {
          let message = message(number, &random)
          #expect(try pair.send(message).message == message)
          try pair.receive(pair.serverFrame(message))
          #expect(pair.messages.last == message)
        }
      }
    }
  }

  @Test("Contexts that are kept make a message like the last a few bytes, and others don't") func takeover() throws {
    var random = SplitMix64(seed: 2)
    let text = (0..<400).map { _ in UInt8.random(in: 0...255, using: &random) }  // nothing repeats within it
    let keeping = try Pair(offer: DeflateParameters(), policy: Self.keeping, sharing: .shared())
    try keeping.receive([])
    #expect(try keeping.send(text).bytes > 400)
    #expect(try keeping.send(text).bytes < 30)
    try keeping.receive(keeping.serverFrame(text))
    let second = keeping.serverFrame(text)
    #expect(second.count < 30)
    try keeping.receive(second)
    #expect(keeping.messages == [text, text])

    let plain = try Pair(offer: .withoutContexts, policy: Self.keeping, sharing: .shared())
    try plain.receive([])
    for _ in 0..<2 { #expect(try plain.send(text).bytes > 400) }
  }

  @Test("Two sockets that keep no contexts share one compressor, and one that does has its own") func sharing() throws {
    let shared = MessageCompression.shared()
    let pairs = [
      try Pair(offer: .withoutContexts, policy: Self.keeping, sharing: shared),
      try Pair(offer: .withoutContexts, policy: Self.keeping, sharing: shared),
    ]
    try pairs[0].receive([])
    try pairs[1].receive([])
    for number in 0..<5 {
      let text = Array(String(repeating: "message \(number) ", count: 40).utf8)
      #expect(try pairs[0].send(text).message == text)
      #expect(try pairs[1].send(text).message == text)
    }
    #expect(shared.serves(.withoutContexts))
    #expect(!shared.serves(DeflateParameters()))
    #expect(!shared.serves(parameters { $0.clientNoContextTakeover = true }))
    var narrow = DeflateParameters.withoutContexts
    narrow.clientMaxWindowBits = .bits(11)
    #expect(!shared.serves(narrow))
    narrow.clientMaxWindowBits = .bits(12)
    #expect(shared.serves(narrow))
  }

  @Test("Small messages, and those that would not shrink, go out as they are where no contexts are kept")
  func notWorthIt() throws {
    let pair = try Pair(offer: .withoutContexts, policy: Self.keeping)
    try pair.receive([])
    let small = [UInt8](repeating: 0x41, count: 99)
    #expect(try pair.send(small, compressedBytes: 100).bytes == 99 + 6)
    #expect(try pair.send(small + [0x41], compressedBytes: 100).bytes < 30)
    var random = SplitMix64(seed: 3)
    let noise = (0..<200).map { _ in UInt8.random(in: 0...255, using: &random) }
    #expect(try pair.send(noise).bytes == 200 + 8)
  }

  @Test("With an agreed window that zlib has not, a client sends uncompressed") func smallestWindow() throws {
    // RFC 7692 §7.1.2.2 allows 8 bits; §6 allows every message to be uncompressed.
    let offer = parameters { $0.clientMaxWindowBits = .unspecified }
    let pair = try Pair(offer: offer, policy: Self.keeping)
    let head = String(decoding: pair.answer, as: UTF8.self)
    pair.answer = Array(
      head.replacing("permessage-deflate", with: "permessage-deflate; client_max_window_bits=8").utf8)
    try pair.receive([])
    let text = [UInt8](repeating: 0x41, count: 300)
    #expect(try pair.send(text).bytes == 300 + 8)
  }

  @Test("What comes in one segment with the 101 is read, wherever the stream is cut") func behindTheAnswer() throws {
    for compression in [nil, DeflateParameters()] {
      let model = try Pair(offer: compression, policy: Self.keeping)
      let stream =
        model.answer + model.serverFrame(Array("first".utf8)) + frame(.ping, [1], to: .client)
        + model.serverFrame(Array("second".utf8))
      for cut in 1..<stream.count {
        let pair = try Pair(offer: compression, policy: Self.keeping)
        pair.answer = []
        try pair.receive(Array(stream[..<cut]))
        try pair.receive(Array(stream[cut...]))
        #expect(pair.isOpen && pair.messages == [Array("first".utf8), Array("second".utf8)])
        #expect(try pair.controlFrames() == ["pong \u{1}"])
      }
    }
  }

  @Test("An answer with a parameter that was not offered, twice or out of range fails the handshake")
  func badAnswers() throws {
    let answers = [
      "permessage-deflate; client_max_window_bits=10", "permessage-deflate; server_max_window_bits=7",
      "permessage-deflate; server_no_context_takeover; server_no_context_takeover", "permessage-deflate; x",
      "permessage-deflate, permessage-deflate", "x-webkit-deflate-frame", "permessage-deflate; server_max_window_bits",
    ]
    for answer in answers {
      let pair = try Pair(offer: DeflateParameters(), policy: Self.keeping)
      pair.answer = Array(
        String(decoding: pair.answer, as: UTF8.self).replacing("permessage-deflate", with: answer).utf8)
      do {
        try pair.receive(text("never seen", to: .client))
        Issue.record("\(answer) was taken")
      } catch ClientSocketError.handshake(.unexpectedExtension, _, _) {
        #expect(!pair.isOpen && !pair.maySend)
      }
      try pair.receive(text("dropped", to: .client))
      #expect(pair.messages.isEmpty)
    }
  }

  @Test("A refusal is given back with what came of its body") func refusal() throws {
    let pair = try Pair()
    pair.answer = Array("HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nfull".utf8)
    do {
      try pair.receive([])
      Issue.record("opened")
    } catch ClientSocketError.handshake(.refused(let status), let head, let body) {
      #expect(status.code == 503 && head.fields.string("retry-after") == "7" && body == Array("full".utf8))
    }
  }

  @Test("A head beyond its limit, and what is no HTTP, fail") func noHTTP() throws {
    for answer in ["HTTP/1.1 101 x\r\nx: " + String(repeating: "y", count: 5000), "220 mail.example\r\n\r\n"] {
      let pair = try Pair()
      pair.answer = Array(answer.utf8)
      do {
        try pair.receive([])
        Issue.record("opened")
      } catch ClientSocketError.notHTTP {
        #expect(!pair.hasControlFrames)
      }
    }
  }

  @Test("Of many pings the newest are answered; none is behind a Close") func pongs() throws {
    let pair = try Pair()
    try pair.receive((0..<5).flatMap { frame(.ping, Array("\($0)".utf8), to: .client) })
    #expect(try pair.controlFrames() == ["pong 2", "pong 3", "pong 4"])
    try pair.receive(frame(.ping, Array("5".utf8), to: .client))
    #expect(pair.close(.normal))
    #expect(!pair.close(.normal) && !pair.maySend)
    try pair.receive(frame(.ping, Array("6".utf8), to: .client) + text("still counts", to: .client))
    #expect(try pair.controlFrames() == ["pong 5", "close 1000"])
    #expect(pair.messages == [Array("still counts".utf8)])
    try pair.receive(frame(.close, [0x03, 0xE8], to: .client))
    #expect(pair.closeCodes == [.normal])
    #expect(try pair.controlFrames() == [])
  }

  @Test("A server's Close is answered with its code") func closing() throws {
    let pair = try Pair()
    try pair.receive(frame(.close, [0x0F, 0xA1], to: .client) + text("dropped", to: .client))
    #expect(pair.closeCodes == [CloseCode(4001)] && pair.messages.isEmpty)
    #expect(try pair.controlFrames() == ["close 4001"])
  }

  @Test("A bomb, rubbish, bad text, masked frames and RSV1 where none was agreed on end with their codes")
  func broken() throws {
    let zeros = [UInt8](repeating: 0, count: 90_000)
    let cases: [(DeflateParameters?, (Pair) -> [UInt8], FrameError)] = [
      (DeflateParameters(), { $0.serverFrame(zeros) }, .inflatesTooMuch(ratio: 200)),
      (
        DeflateParameters(), { _ in frame(.text, [0x07], compressed: true, to: .client) }, .invalidDeflate
      ),
      (nil, { _ in frame(.text, [0x00], compressed: true, to: .client) }, .reservedBits(0x40)),
      (nil, { _ in frame(.text, [0xFF], to: .client) }, .invalidUTF8),
      (nil, { _ in text("masked", to: .server) }, .maskedFrame),
    ]
    for (offer, bytes, expected) in cases {
      let pair = try Pair(offer: offer, policy: Self.keeping)
      let sent = bytes(pair) + text("dropped", to: .client)
      do {
        try pair.receive(sent)
        Issue.record("\(expected) was not noticed")
      } catch ClientSocketError.frame(let error) {
        #expect(error == expected)
        #expect(try pair.controlFrames() == ["close \(expected.closeCode.rawValue)"])
      }
    }
  }
}
