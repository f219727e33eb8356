// The figures of several hubs as one: what is counted is added, by its reason or role where it has one, and `hubs`
// says how many they are of. Quantiles cannot be added: they are worked out anew from how many deliveries took how
// long, which is known to 1 %. `journalLag` is that of the hub whose journal is latest.
import HubBytes
import HubMessages

extension HubFigures {
  private static let quantiles: [(name: String, share: Double)] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)]

  /// The first one's second. What is no JSON, of a peer that makes other figures, adds nothing.
  static func sum(_ figures: [HubFigures]) -> HubFigures {
    var (members, counts): ([String: JSONValue], [UInt64: UInt64]) = ([:], [:])
    for second in figures {
      for (name, value) in JSONValue(parsing: Array("{\(second.members)}".utf8))?.members ?? [:] {
        members[name] = members[name].map { $0.adding(value, as: name) } ?? value
      }
      for time in second.times { counts[time.microseconds, default: 0] &+= time.count }
    }
    members["hubs"] = .number(Double(figures.count))
    let times = counts.sorted { $0.key < $1.key }.map { Time(microseconds: $0.key, count: $0.value) }
    for (name, share) in quantiles { members[name] = quantile(share, of: times).map { .number($0) } ?? .null }
    var text = ByteBuffer()
    text.append(members: members)
    return HubFigures(
      timestamp: figures[0].timestamp, members: String(decoding: text.array(), as: UTF8.self), times: times)
  }

  /// Seconds that so large a share of the deliveries did not exceed; nil where there were none.
  private static func quantile(_ share: Double, of times: [Time]) -> Double? {
    let all = times.reduce(0) { $0 &+ $1.count }
    let wanted = max(1, UInt64((Double(all) * share).rounded(.up)))
    var seen: UInt64 = 0
    for time in times {
      seen &+= time.count
      if seen >= wanted { return Double(time.microseconds) / 1e6 }
    }
    return nil
  }
}

extension JSONValue {
  fileprivate func adding(_ other: JSONValue, as name: String) -> JSONValue {
    switch (self, other) {
    case (.number(let one), .number(let two)): .number(name == "journalLag" ? max(one, two) : one + two)
    case (.object(let one), .object(let two)):
      .object(one.merging(two) { $0.adding($1, as: "") })
    case (.null, _): other
    case (.bool, _), (.number, _), (.string, _), (.array, _), (.object, _): self
    }
  }
}

extension ByteBuffer {
  /// Members of an object, without its braces; of the kinds that figures have.
  fileprivate mutating func append(members: [String: JSONValue]) {
    for (index, (name, value)) in members.sorted(by: { $0.key < $1.key }).enumerated() {
      if index > 0 { append(",") }
      append(json: name)
      append(":")
      switch value {
      case .number(let number): append(figure: number)
      case .object(let inner):
        append("{")
        append(members: inner)
        append("}")
      case .null, .bool, .string, .array: append("null")
      }
    }
  }

  /// Writes null for a sum of others' numbers that is too large for one.
  private mutating func append(figure number: Double) {
    guard number.isFinite else { return append("null") }
    if let whole = Int64(exactly: number) { append(integer: whole) } else { append(double: number) }
  }
}
