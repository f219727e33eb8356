// Content negotiation: Accept-Encoding and If-None-Match (RFC 9110 §12.5.3, §13.1.2).
import HubBytes

extension HeaderFields {
  /// Whether `Accept-Encoding` has gzip with a weight above 0, by its name or by `*`. False without the field: most
  /// such clients read plain bytes only.
  public var acceptGzip: Bool {
    var byName: Bool?
    var byStar = false
    for element in elements("accept-encoding", atMost: HTTPLimits.listElements) {
      let name = ASCII.trimmed(element.prefix { $0 != 0x3B })
      let isTaken = HeaderFields.weighsAnything(element)
      if ASCII.equals(name, "gzip") || ASCII.equals(name, "x-gzip") { byName = isTaken }
      if ASCII.equals(name, "*") { byStar = isTaken }
    }
    return byName ?? byStar
  }

  /// RFC 9110 §12.4.2: a weight of `0`, `0.0`, `0.00` or `0.000` means "not acceptable".
  private static func weighsAnything(_ element: ArraySlice<UInt8>) -> Bool {
    guard let mark = element.firstIndex(of: 0x3B) else { return true }
    let parameter = ASCII.trimmed(element[(mark + 1)...])
    guard parameter.count > 2, parameter.starts(with: Array("q=".utf8)) || parameter.starts(with: Array("Q=".utf8))
    else { return true }
    return parameter.dropFirst(2).contains { (0x31...0x39).contains($0) }
  }

  /// Whether `If-None-Match` has one of these tags, compared weakly, or is `*`.
  ///
  /// - Parameter tags: with their quotation marks, and without a comma.
  public func ifNoneMatch(has tags: [String]) -> Bool {
    elements("if-none-match", atMost: HTTPLimits.listElements).contains { element in
      let tag = element.starts(with: "W/".utf8) ? element.dropFirst(2) : element
      return element.elementsEqual("*".utf8) || tags.contains { $0.utf8.elementsEqual(tag) }
    }
  }
}
