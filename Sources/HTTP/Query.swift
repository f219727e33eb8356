// Query strings and percent-encoding (RFC 3986 §2.1, §3.4), with `+` for a space in queries as HTML forms and every
// browser's URLSearchParams write it (WHATWG URL §5.1).

/// The part of a target behind its `?`: `name=value` pairs with `&` between them.
public struct Query: Sendable {
  /// The raw query.
  public let bytes: ArraySlice<UInt8>

  public init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

  /// Whether there is no byte behind the `?`.
  public var isEmpty: Bool { bytes.isEmpty }

  /// The first value of that name, decoded; nil when the name does not occur. `name` alone has an empty value.
  /// Throws `.malformedPercentEncoding`. Allocates nothing but the value.
  public func bytes(_ name: StaticString) throws(HTTPError) -> [UInt8]? {
    guard let raw = raw(name) else { return nil }
    return try PercentEncoding.decode(raw, plusIsSpace: true)
  }

  /// The first value of that name as text. Throws what `PercentEncoding.string` does.
  public func string(_ name: StaticString) throws(HTTPError) -> String? {
    guard let raw = raw(name) else { return nil }
    return try PercentEncoding.string(raw, plusIsSpace: true)
  }

  /// All pairs in order, decoded, to be compared by their bytes (`isSpelled`). Throws `.malformedPercentEncoding`, and
  /// before anything is decoded `.tooManyParameters` beyond `HTTPLimits.parameters`.
  public func items() throws(HTTPError) -> [(name: String, value: String)] {
    let pairs = bytes.split(separator: 0x26, maxSplits: HTTPLimits.parameters)
    guard pairs.count <= HTTPLimits.parameters else { throw .tooManyParameters(limit: HTTPLimits.parameters) }
    var items: [(name: String, value: String)] = []
    for pair in pairs {
      let (name, value) = Query.halves(pair)
      items.append(
        (try PercentEncoding.text(name, plusIsSpace: true), try PercentEncoding.text(value, plusIsSpace: true)))
    }
    return items
  }

  /// An unknown or repeated name in a query.
  public enum Fault: Equatable, Sendable, CustomStringConvertible {
    /// An unknown name, percent-encoded, and the known ones.
    case unknown(String, known: String)
    case repeated(String)

    /// What is wrong with a parameter, for the client.
    public var description: String {
      switch self {
      case .unknown(let name, let known): "there is no parameter \(name) here, only \(known)"
      case .repeated(let name): "\(name) is given twice"
      }
    }
  }

  /// The first name that is not in `names`, which has up to 64, or that is repeated. Allocates nothing unless it finds
  /// one.
  ///
  /// - Parameters:
  ///   - passingOthers: unknown names are ignored.
  ///   - first: the index in `names` from which names may be repeated.
  public func fault(
    knowing names: [StaticString], passingOthers: Bool = false, repeatableFrom first: Int = .max
  ) -> Fault? {
    var seen: UInt64 = 0
    var rest = bytes
    while !rest.isEmpty {
      let end = rest.firstIndex(of: 0x26) ?? rest.endIndex
      let (name, _) = Query.halves(rest[rest.startIndex..<end])
      rest = end == rest.endIndex ? rest[end...] : rest[(end + 1)...]
      if name.isEmpty { continue }  // `a=1&&b=2`, and `&` at the end
      guard let index = names.firstIndex(where: { PercentEncoding.decodes(name, to: $0) }) else {
        if passingOthers { continue }
        let known = names.map { "\($0)" }.joined(separator: ", ")
        return .unknown(String(decoding: name.prefix(64), as: UTF8.self), known: known)
      }
      if seen >> UInt64(index) & 1 != 0, index < first { return .repeated("\(names[index])") }
      seen |= 1 << UInt64(index)
    }
    return nil
  }

  private func raw(_ name: StaticString) -> ArraySlice<UInt8>? {
    var rest = bytes
    while !rest.isEmpty {
      let end = rest.firstIndex(of: 0x26) ?? rest.endIndex
      let (rawName, value) = Query.halves(rest[rest.startIndex..<end])
      if PercentEncoding.decodes(rawName, to: name) { return value }
      rest = end == rest.endIndex ? rest[end...] : rest[(end + 1)...]
    }
    return nil
  }

  private static func halves(_ pair: ArraySlice<UInt8>) -> (ArraySlice<UInt8>, ArraySlice<UInt8>) {
    guard let sign = pair.firstIndex(of: 0x3D) else { return (pair, pair[pair.endIndex...]) }
    return (pair[..<sign], pair[(sign + 1)...])
  }
}

/// Percent-encoding of URIs.
public enum PercentEncoding {
  /// The decoded bytes; throws `.malformedPercentEncoding` where two hex digits do not follow a `%`.
  public static func decode(_ bytes: ArraySlice<UInt8>, plusIsSpace: Bool) throws(HTTPError) -> [UInt8] {
    var decoded: [UInt8] = []
    decoded.reserveCapacity(bytes.count)
    var index = bytes.startIndex
    while index < bytes.endIndex {
      guard let byte = next(bytes, &index, plusIsSpace) else { throw .malformedPercentEncoding }
      decoded.append(byte)
    }
    return decoded
  }

  /// The decoded bytes as text, which may be compared (see `isSpelled`). Throws `.malformedPercentEncoding` also where
  /// they are not UTF-8, and `.textTooLong` beyond `HTTPLimits.otherTextBytes` where they are not ASCII.
  public static func string(_ bytes: ArraySlice<UInt8>, plusIsSpace: Bool) throws(HTTPError) -> String {
    let text = try text(bytes, plusIsSpace: plusIsSpace)
    guard text.utf8.count <= HTTPLimits.otherTextBytes || text.utf8.allSatisfy({ $0 < 0x80 }) else {
      throw .textTooLong(limit: HTTPLimits.otherTextBytes)
    }
    return text
  }

  fileprivate static func text(_ bytes: ArraySlice<UInt8>, plusIsSpace: Bool) throws(HTTPError) -> String {
    guard let text = String(validating: try decode(bytes, plusIsSpace: plusIsSpace), as: UTF8.self) else {
      throw .malformedPercentEncoding
    }
    return text
  }

  /// Whether the bytes, decoded as in a query, are those of `text`; false where they cannot be decoded.
  static func decodes(_ bytes: ArraySlice<UInt8>, to text: StaticString) -> Bool {
    var index = bytes.startIndex
    for offset in 0..<text.utf8CodeUnitCount {
      guard index < bytes.endIndex, unsafe next(bytes, &index, true) == text.utf8Start[offset] else { return false }
    }
    return index == bytes.endIndex
  }

  private static func next(_ bytes: ArraySlice<UInt8>, _ index: inout Int, _ plusIsSpace: Bool) -> UInt8? {
    let byte = bytes[index]
    index += 1
    if byte == 0x2B, plusIsSpace { return 0x20 }
    guard byte == 0x25 else { return byte }
    guard bytes.endIndex - index >= 2, let high = ASCII.hexValue(bytes[index]),
      let low = ASCII.hexValue(bytes[index + 1])
    else { return nil }
    index += 2
    return high << 4 | low
  }
}
