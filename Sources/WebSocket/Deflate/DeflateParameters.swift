// The agreement of both ends on compression (RFC 7692 §5, §7.1).

import HubBytes
import HubDeflate
import HubHTTP

/// The parameters of `permessage-deflate` in an offer or in a response.
public struct DeflateParameters: Sendable, Equatable {
  /// A window of 2^n bytes. In an offer `client_max_window_bits` may stand without a number (RFC 7692 §7.1.2.2).
  public enum WindowBits: Sendable, Equatable {
    case absent
    case unspecified
    case bits(Int)
  }

  /// The server compresses each message for itself. RFC 7692 §7.1.1.1.
  public var serverNoContextTakeover = false
  /// The client compresses each message for itself. RFC 7692 §7.1.1.2.
  public var clientNoContextTakeover = false
  /// The largest window of the server's compressor, 8–15. RFC 7692 §7.1.2.1.
  public var serverMaxWindowBits = WindowBits.absent
  /// The largest window of the client's compressor. RFC 7692 §7.1.2.2.
  public var clientMaxWindowBits = WindowBits.absent

  static let name: StaticString = "permessage-deflate"

  public init() {}

  /// No contexts in either direction, so that one compressor serves many connections.
  public static let withoutContexts: DeflateParameters = {
    var parameters = DeflateParameters()
    parameters.serverNoContextTakeover = true
    parameters.clientNoContextTakeover = true
    return parameters
  }()

  /// Nil where a parameter is unknown, repeated or invalid: such an offer is declined (RFC 7692 §7.1) and such a
  /// response fails the connection (§5.2).
  init?(_ element: ExtensionElement) {
    guard ASCII.equals(element.name, Self.name) else { return nil }
    var seen: UInt8 = 0
    for (name, value) in element.parameters {
      let flag: UInt8
      if ASCII.equals(name, "server_no_context_takeover") {
        guard value == nil else { return nil }
        serverNoContextTakeover = true
        flag = 1
      } else if ASCII.equals(name, "client_no_context_takeover") {
        guard value == nil else { return nil }
        clientNoContextTakeover = true
        flag = 2
      } else if ASCII.equals(name, "server_max_window_bits") {
        guard let bits = Self.windowBits(value) else { return nil }
        serverMaxWindowBits = .bits(bits)
        flag = 4
      } else if ASCII.equals(name, "client_max_window_bits") {
        let bits = Self.windowBits(value)
        guard value == nil || bits != nil else { return nil }
        clientMaxWindowBits = bits.map { .bits($0) } ?? .unspecified
        flag = 8
      } else {
        return nil
      }
      guard seen & flag == 0 else { return nil }
      seen |= flag
    }
  }

  /// "a decimal integer value without leading zeroes between 8 to 15, inclusive". RFC 7692 §7.1.2.
  private static func windowBits(_ value: [UInt8]?) -> Int? {
    guard let value, value.first != 0x30, let bits = ASCII.decimal(value[...]), (8...15).contains(bits) else {
      return nil
    }
    return bits
  }

  /// Writes `Sec-WebSocket-Extensions` with its CRLF.
  func write(into buffer: inout ByteBuffer) {
    buffer.append("Sec-WebSocket-Extensions: ")
    buffer.append(Self.name)
    if serverNoContextTakeover { buffer.append("; server_no_context_takeover") }
    if clientNoContextTakeover { buffer.append("; client_no_context_takeover") }
    Self.write("; server_max_window_bits", serverMaxWindowBits, into: &buffer)
    Self.write("; client_max_window_bits", clientMaxWindowBits, into: &buffer)
    buffer.append("\r\n")
  }

  private static func write(_ name: StaticString, _ window: WindowBits, into buffer: inout ByteBuffer) {
    switch window {
    case .absent: break
    case .unspecified: buffer.append(name)
    case .bits(let bits):
      buffer.append(name)
      buffer.append("=")
      buffer.append(integer: UInt64(bits))
    }
  }
}

/// What a server accepts of offers.
public struct DeflatePolicy: Sendable, Equatable {
  /// Whether contexts are kept between messages, unless the client asks otherwise. False answers
  /// `server_no_context_takeover` and `client_no_context_takeover` to every client, as RFC 7692 §7.1.1 allows, so one
  /// compressor and one decompressor serve all connections. A client that does not support it fails the handshake, and
  /// can retry without an offer.
  public var keepsContexts: Bool
  /// The windows that the server's compressor supports. An offer of a smaller one is declined.
  public var windowBits: ClosedRange<Int>

  public init(keepsContexts: Bool, windowBits: ClosedRange<Int>) {
    precondition(windowBits.lowerBound >= Deflater.smallestWindowBits && windowBits.upperBound <= 15)
    self.keepsContexts = keepsContexts
    self.windowBits = windowBits
  }

  /// The response to the first acceptable offer, if any. RFC 7692 §5.1: offers are in the client's order of preference.
  func response(to offers: [ExtensionElement]) -> DeflateParameters? {
    for element in offers {
      if let offer = DeflateParameters(element), let response = response(to: offer) { return response }
    }
    return nil
  }

  private func response(to offer: DeflateParameters) -> DeflateParameters? {
    var response = DeflateParameters()
    response.serverNoContextTakeover = offer.serverNoContextTakeover || !keepsContexts
    response.clientNoContextTakeover = offer.clientNoContextTakeover || !keepsContexts
    // `client_max_window_bits` needs no answer: a decompressor of 15 bits understands every window (§7.1.2.2).
    if case .bits(let asked) = offer.serverMaxWindowBits {
      guard asked >= windowBits.lowerBound else { return nil }
      response.serverMaxWindowBits = .bits(min(asked, windowBits.upperBound))
    }
    return response
  }

  /// The compressor's window for a connection with this response.
  public func compressorWindowBits(_ agreed: DeflateParameters) -> Int {
    if case .bits(let bits) = agreed.serverMaxWindowBits { return bits }
    return windowBits.upperBound
  }
}

extension DeflateParameters {
  /// Whether this response may answer `offer`. RFC 7692 §5.2, §7.1.1.1, §7.1.2.1, §7.1.2.2.
  func answers(_ offer: DeflateParameters) -> Bool {
    if offer.serverNoContextTakeover, !serverNoContextTakeover { return false }
    if case .bits(let asked) = offer.serverMaxWindowBits {
      guard case .bits(let given) = serverMaxWindowBits, given <= asked else { return false }
    }
    switch (clientMaxWindowBits, offer.clientMaxWindowBits) {
    case (.absent, _): return true
    case (.unspecified, _), (.bits, .absent): return false
    case (.bits, .unspecified): return true
    case (.bits(let given), .bits(let offered)): return given <= offered
    }
  }
}
