// Signatures by the Standard Webhooks specification
// (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md, "Verifying webhook
// authenticity"): `v1` is HMAC-SHA-256 with a shared secret, `v1a` is Ed25519.
import HubBytes
public import HubMessages
public import HubTokens

/// A shared secret: `whsec_` and its bytes in base64.
public struct WebhookSecret: Sendable, Equatable {
  public let bytes: [UInt8]

  /// Nil where there are not as many bytes as `byteRange` says.
  public init?(bytes: [UInt8]) {
    guard Self.byteRange.contains(bytes.count) else { return nil }
    self.bytes = bytes
  }

  /// Reads `whsec_…`, or the base64 alone. Nil where it is none.
  public init?(_ text: String) {
    let digits = text.hasPrefix(Self.prefix) ? text.dropFirst(Self.prefix.count) : text[...]
    guard let bytes = PaddedBase64.decode(digits.utf8) else { return nil }
    self.init(bytes: bytes)
  }

  /// What its owner gives to the receiver.
  public var text: String { Self.prefix + PaddedBase64.encode(bytes) }

  private static let prefix = "whsec_"
}

/// Signs the requests of one webhook.
public struct WebhookSigner: Sendable {
  private let keys: [SigningKey]

  /// - Parameters:
  ///   - secrets: 1 to `maximumSecrets`, the newest first; each gives a `v1`.
  ///   - key: an Ed25519 key that can sign; it gives a `v1a`.
  /// - Throws: `.cannotSign` for another number of secrets or another key.
  public init(secrets: [WebhookSecret], key: SigningKey? = nil) throws(KeyError) {
    guard 1...Self.maximumSecrets ~= secrets.count, key.map({ $0.algorithm == .edDSA && $0.isPrivate }) ?? true else {
      throw .cannotSign
    }
    var keys: [SigningKey] = []
    for (index, secret) in secrets.enumerated() {
      keys.append(try SigningKey.secret(secret.bytes, keyID: nil, number: index + 1))
    }
    self.keys = keys + (key.map { [$0] } ?? [])
  }

  /// The value of `webhook-signature`: signatures with spaces between, of `id.timestamp.body`, the timestamp in whole
  /// seconds since 1970. O(body) for each key.
  /// - Precondition: `id` has no full stop.
  public func signatures(id: String, timestamp: Timestamp, body: [UInt8]) throws(KeyError) -> String {
    precondition(!id.utf8.contains(UInt8(ascii: ".")))
    let signed = Array("\(id).\(timestamp.wholeSecond.milliseconds / 1000).".utf8) + body
    var texts: [String] = []
    for key in keys {
      let version = key.algorithm == .edDSA ? "v1a," : "v1,"
      texts.append(version + PaddedBase64.encode(try key.sign(signed)))
    }
    return texts.joined(separator: " ")
  }
}

/// Base64 with padding (RFC 4648 §4): base64url but for two characters.
enum PaddedBase64 {
  static func encode(_ bytes: [UInt8]) -> String {
    let digits = Base64URL.encode(bytes).map { digit in
      switch digit {
      case UInt8(ascii: "-"): UInt8(ascii: "+")
      case UInt8(ascii: "_"): UInt8(ascii: "/")
      default: digit
      }
    }
    return String(decoding: digits, as: UTF8.self) + String(repeating: "=", count: (4 - digits.count % 4) % 4)
  }

  /// Nil where it is none, or lacks its padding.
  static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
    guard text.count % 4 == 0, !text.contains(where: { "-_".utf8.contains($0) }) else { return nil }
    var digits = text.map { digit in
      switch digit {
      case UInt8(ascii: "+"): UInt8(ascii: "-")
      case UInt8(ascii: "/"): UInt8(ascii: "_")
      default: digit
      }
    }
    for _ in 0..<2 where digits.last == UInt8(ascii: "=") { digits.removeLast() }
    return Base64URL.decode(digits)
  }
}
