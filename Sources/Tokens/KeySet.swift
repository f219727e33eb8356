// The keys that a hub checks tokens with, and their file formats: PEM blocks, a JSON Web Key Set (RFC 7517 §5), one
// JSON Web Key, or the bytes of a secret. The first bytes decide which it is.
import HubBytes

/// Some keys. Immutable; a reload makes a new set.
public struct KeySet: Sendable {
  public let keys: [SigningKey]

  public init(keys: [SigningKey]) { self.keys = keys }

  /// The keys that a token may be signed with, by its `kid` and `alg`. The key decides its algorithm, not the header
  /// (RFC 8725 §3.1).
  ///
  /// A `kid` selects the keys of that name; where there are none, those without a name, as PEM files have no names.
  func candidates(keyID: String?, algorithm: Algorithm) throws(TokenError) -> [SigningKey] {
    var named = keys
    if let keyID {
      named = keys.filter { $0.keyID.map { $0.utf8.elementsEqual(keyID.utf8) } ?? false }
      if named.isEmpty { named = keys.filter { $0.keyID == nil } }
      guard !named.isEmpty else { throw .unknownKey }
    }
    let fitting = named.filter { $0.algorithm == algorithm }
    guard !fitting.isEmpty else { throw .algorithmDoesNotFitKey }
    return fitting
  }
}

extension KeySet {
  /// Reads a file's bytes.
  public init(parsing file: [UInt8]) throws(KeyError) {
    let text = file.withoutByteOrderMark.drop { $0 == 0x20 || $0 == 0x0A || $0 == 0x0D || $0 == 0x09 }
    guard !text.isEmpty else { throw .empty }
    if text.first == UInt8(ascii: "{") {
      self.init(keys: try KeySet.jsonWebKeys(text))
    } else if text.firstRange(of: KeySet.begin) != nil {
      self.init(keys: try KeySet.pemBlocks(text))
    } else {
      let secret = KeySet.withoutLineEnd(file)
      // These may be two secrets, or one that was wrapped, which its issuer may sign with or without the line end.
      guard SigningKey.isKeyText(secret) || !KeySet.isTextOfLines(secret) else { throw .severalLines }
      self.init(keys: [try SigningKey.secret(secret, keyID: nil, number: 1)])
    }
  }

  /// The bytes of a secret without a line end, which editors and `openssl rand -base64` append.
  private static func withoutLineEnd(_ bytes: [UInt8]) -> [UInt8] {
    var bytes = bytes
    if bytes.last == 0x0A { bytes.removeLast() }
    if bytes.last == 0x0D { bytes.removeLast() }
    return bytes
  }

  private static func isTextOfLines(_ bytes: [UInt8]) -> Bool {
    let isText = bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F || [0x09, 0x0A, 0x0D].contains($0) }
    return isText && bytes.contains { $0 == 0x0A || $0 == 0x0D } && String(validating: bytes, as: UTF8.self) != nil
  }

  // MARK: PEM (RFC 7468)

  private static let begin = Array("-----BEGIN ".utf8)
  private static let end = Array("-----END ".utf8)

  private static func pemBlocks(_ text: ArraySlice<UInt8>) throws(KeyError) -> [SigningKey] {
    var keys: [SigningKey] = []
    var number = 0
    var rest = text
    while let start = rest.firstRange(of: begin)?.lowerBound {
      number += 1
      guard let last = rest[start...].firstRange(of: end),
        let lineEnd = rest[last.upperBound...].firstRange(of: Array("-----".utf8))
      else { throw .badPEM(block: number) }
      let block = rest[start..<lineEnd.upperBound]
      rest = rest[lineEnd.upperBound...]
      let label = String(decoding: block.dropFirst(begin.count).prefix { $0 != UInt8(ascii: "-") }, as: UTF8.self)
      if label == "EC PARAMETERS" { continue }  // what `openssl ecparam -genkey` writes before the key
      guard keys.count < maximumKeys else { throw .tooManyKeys(limit: maximumKeys) }
      keys.append(
        try SigningKey.pem(Array(block) + [0x0A], isPrivate: label.hasSuffix("PRIVATE KEY"), number: number))
    }
    guard !keys.isEmpty else { throw .empty }
    return keys
  }

  // MARK: JSON Web Keys (RFC 7517)

  private static func jsonWebKeys(_ text: ArraySlice<UInt8>) throws(KeyError) -> [SigningKey] {
    guard let set = JSONValue(parsing: text), let members = set.members else { throw .badKeySet }
    let list: [JSONValue]
    if members["kty"] != nil {
      list = [set]
    } else {
      guard let elements = members["keys"]?.elements else { throw .badKeySet }
      list = elements
    }
    guard list.count <= maximumKeys else { throw .tooManyKeys(limit: maximumKeys) }
    var keys: [SigningKey] = []
    for (index, element) in list.enumerated() {
      guard let key = element.members else { throw .badKey(index + 1) }
      // RFC 7517 §4.2: a verifier skips keys for encryption.
      if key["use"] != nil, key["use"]?.string != "sig" { continue }
      let made: SigningKey
      do throws(KeyError) { made = try SigningKey.jsonWebKey(key, number: index + 1) } catch {
        // RFC 7517 §5: of several, those of a kind that is not known are passed over.
        if case .unsupportedKey = error, list.count > 1 { continue }
        throw error
      }
      if made.keyID != nil, keys.contains(where: { $0.keyID == made.keyID && $0.algorithm == made.algorithm }) {
        throw .duplicateKeyID(index + 1)
      }
      keys.append(made)
    }
    guard !keys.isEmpty else { throw .empty }
    return keys
  }
}

extension [UInt8] {
  /// The bytes of a text without the mark that editors of Windows put before it.
  var withoutByteOrderMark: ArraySlice<UInt8> { dropFirst(starts(with: "\u{FEFF}".utf8) ? 3 : 0) }
}

extension SigningKey {
  /// One JSON Web Key. `number` names it in errors.
  static func jsonWebKey(_ key: [String: JSONValue], number: Int) throws(KeyError) -> SigningKey {
    let keyID = key["kid"]?.string
    guard key["kid"] == nil || keyID != nil else { throw .badKey(number) }
    func part(_ name: String) throws(KeyError) -> [UInt8] {
      guard let text = key[name]?.string, let bytes = Base64.url.decode(text.utf8), !bytes.isEmpty else {
        throw .badKey(number)
      }
      return bytes
    }
    func part(ifPresent name: String) throws(KeyError) -> [UInt8]? { key[name] == nil ? nil : try part(name) }

    let made: SigningKey
    switch (key["kty"]?.string, key["crv"]?.string) {
    case ("oct", nil): made = try secret(try part("k"), keyID: keyID, number: number)
    case ("RSA", nil):
      var rest: [[UInt8]] = []
      for name in ["d", "p", "q", "dp", "dq", "qi"] {
        if let bytes = try part(ifPresent: name) { rest.append(bytes) }
      }
      made = try rsa(n: try part("n"), e: try part("e"), rest: rest, keyID: keyID, number: number)
    case ("EC", "P-256"):
      made = try p256(
        x: try part("x"), y: try part("y"), d: try part(ifPresent: "d"), keyID: keyID, number: number)
    case ("OKP", "Ed25519"):
      made = try ed25519(x: try part("x"), d: try part(ifPresent: "d"), keyID: keyID, number: number)
    default: throw .unsupportedKey(number)
    }
    // RFC 7517 §4.4: a key's `alg`, where it has one, must fit its type.
    guard key["alg"] == nil || key["alg"]?.string == made.algorithm.rawValue else { throw .unsupportedKey(number) }
    return made
  }
}
