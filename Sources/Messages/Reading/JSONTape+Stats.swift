// The hub's own figures, as a client reads them.
import HubBytes

extension JSONTape {
  /// The figures of the object at an index of the tape.
  func figures(_ index: Int, _ bytes: Span<UInt8>, _ time: TimeFormat) throws(ValidationError) -> HubFigures {
    HubFigures(
      timestamp: try required(timestamp(members(of: index), .timestamp, bytes, time), .timestamp),
      members: String(decoding: members(of: index, but: [.channel, .timestamp], bytes) ?? [], as: UTF8.self))
  }

  /// Nil where there is no `history`.
  func history(
    _ payload: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat
  ) throws(ValidationError) -> [HubFigures]? {
    guard present(payload, .history) != nil else { return nil }
    var history: [HubFigures] = []
    try forEach(payload, .history) { (index) throws(ValidationError) in
      guard self[index].kind == .object else { throw ValidationError(.history, "expected objects") }
      history.append(try figures(index, bytes, time))
    }
    return history
  }
}
