// Keys of phones whose app cannot renew tokens: a secret for each, of which the hub knows the SHA-256 only.
//
// A secret has 160 bits of randomness (`locationhub device add`), so that a plain hash is enough: it cannot be guessed,
// and the file does not reveal it.
public import HubMessages

/// The drivers of devices' keys, found by a secret's SHA-256.
public struct DeviceKeys: Sendable {
  /// The drivers, by the SHA-256 of their secrets.
  private let drivers: [[UInt8]: Identifier]

  /// No keys.
  public init() { drivers = [:] }

  /// Reads a file of lines `driverId SHA-256`, the hash in 64 hexadecimal digits. Empty lines and lines that begin with
  /// `#` are skipped; a driver may have several keys.
  public init(parsing file: [UInt8]) throws(KeyError) {
    var drivers: [[UInt8]: Identifier] = [:]
    for (index, line) in file.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
      let words = line.split { $0 <= 0x20 }
      if words.isEmpty || words[0].first == UInt8(ascii: "#") { continue }
      guard words.count == 2, let driver = Identifier(String(decoding: words[0], as: UTF8.self)),
        let hash = DeviceKeys.bytes(hexadecimal: words[1]), hash.count == 32
      else { throw .badDeviceLine(index + 1) }
      guard drivers.updateValue(driver, forKey: hash) == nil else { throw .badDeviceLine(index + 1) }
      guard drivers.count <= DeviceKeys.maximumKeys else { throw .tooManyKeys(limit: DeviceKeys.maximumKeys) }
    }
    self.drivers = drivers
  }

  /// The number of keys.
  public var count: Int { drivers.count }

  /// The driver with this secret, if any. O(length).
  public func driver(of secret: some Collection<UInt8>) -> Identifier? {
    guard !drivers.isEmpty, secret.count <= DeviceKeys.maximumSecretBytes else { return nil }
    return drivers[DeviceKeys.hash(secret)]
  }

  /// The line of a file for a driver's secret.
  public static func line(of driver: Identifier, secret: String) -> String {
    let digits = hash(Array(secret.utf8)).map { byte in
      let text = String(byte, radix: 16)
      return byte < 16 ? "0" + text : text
    }
    return "\(driver) \(digits.joined())"
  }

  private static func hash(_ secret: some Collection<UInt8>) -> [UInt8] { Digest.sha256(of: Array(secret)) }

  private static func bytes(hexadecimal text: ArraySlice<UInt8>) -> [UInt8]? {
    let digits = text.compactMap { Character(UnicodeScalar($0)).hexDigitValue.map(UInt8.init) }
    guard digits.count == text.count, digits.count % 2 == 0 else { return nil }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }
}
