// Signatures by the Standard Webhooks specification
// (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md, "Verifying webhook
// authenticity"): `v1` is HMAC-SHA-256 with a shared secret, `v1a` is Ed25519.
import HubBytes
public import HubMessages
public import HubTokens

/// A shared secret: `whsec_` and its bytes in base64.
public struct WebhookSecret: Sendable, Equatable {
  public let bytes: [UInt8]

  /// Nil where the number of bytes is outside `byteRange`.
  public init?(bytes: [UInt8]) {
    guard Self.byteRange.contains(bytes.count) else { return nil }
    self.bytes = bytes
  }

  /// Reads `whsec_…`, or the base64 alone. Nil for an invalid text.
  public init?(_ text: String) {
    let digits = text.hasPrefix(Self.prefix) ? text.dropFirst(Self.prefix.count) : text[...]
    guard let bytes = Base64.padded.decode(digits.utf8) else { return nil }
    self.init(bytes: bytes)
  }

  /// The text for the receiver.
  public var text: String { Self.prefix + String(decoding: Base64.padded.encode(bytes), as: UTF8.self) }

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
      keys.append(try SigningKey.random(secret.bytes, keyID: nil, number: index + 1))
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
      texts.append(version + String(decoding: Base64.padded.encode(try key.sign(signed)), as: UTF8.self))
    }
    return texts.joined(separator: " ")
  }

  /// A signed request with a body of this type.
  func post(
    _ body: [UInt8], _ type: StaticString, to url: WebhookURL, id: String, timestamp: Timestamp, userAgent: String
  ) -> [UInt8] {
    do throws(KeyError) {
      let head = """
        POST \(url.target) HTTP/1.1\r
        Host: \(url.authority)\r
        User-Agent: \(userAgent)\r
        Content-Type: \(type)\r
        Content-Length: \(body.count)\r
        webhook-id: \(id)\r
        webhook-timestamp: \(timestamp.wholeSecond.milliseconds / 1000)\r
        webhook-signature: \(try signatures(id: id, timestamp: timestamp, body: body))\r
        \r

        """
      return Array(head.utf8) + body
    } catch {
      preconditionFailure("the signer's keys were tried: \(error)")
    }
  }
}
