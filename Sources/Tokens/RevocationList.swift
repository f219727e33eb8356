// Revoked tokens.

public import HubBytes
public import HubMessages

/// The `jti` and the `sub` of revoked tokens. A `sub` revokes all its tokens, those of the future included.
public struct RevocationList: Sendable {
  private let ids: Set<InlineText>

  /// No revocations.
  public init() { ids = [] }

  /// Reads a file of ids, one a line. Empty lines and lines that begin with `#` are skipped; ids have 1–64 bytes. A `#`
  /// behind white space is an error: it would be read as part of the id, which then revokes nothing.
  public init(parsing file: [UInt8]) throws(KeyError) {
    var ids: Set<InlineText> = []
    let lines = file.withoutByteOrderMark.split(separator: 0x0A, omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() {
      var content = line.drop { $0 <= 0x20 }
      while let last = content.last, last <= 0x20 { content.removeLast() }
      if content.isEmpty || content.first == UInt8(ascii: "#") { continue }
      let hasComment = zip(content, content.dropFirst()).contains { $0 <= 0x20 && $1 == UInt8(ascii: "#") }
      guard !hasComment, String(validating: content, as: UTF8.self) != nil,
        let id = unsafe content.withUnsafeBytes({ unsafe InlineText($0) })
      else { throw .badLine(index + 1) }
      ids.insert(id)
    }
    self.ids = ids
  }

  /// The number of entries, each a `jti` or a `sub`.
  public var count: Int { ids.count }

  /// O(1).
  public func contains(subject: Identifier, tokenID: InlineText?) -> Bool {
    guard !ids.isEmpty else { return false }
    if let tokenID, ids.contains(tokenID) { return true }
    return ids.contains(subject.text)
  }
}
