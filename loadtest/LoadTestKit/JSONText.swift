// Writing JSON, indented for people to read and diff. Reading is Bytes' JSONValue.

/// A value with its members in order.
package indirect enum JSONText {
  case number(Double)
  case text(String)
  case flag(Bool)
  case list([JSONText])
  /// Members by name, one a line.
  case record([(String, JSONText)])
  /// A list of numbers on one line.
  case row([Double])

  package var text: String {
    var output = ""
    write(to: &output, indent: 0)
    return output + "\n"
  }

  private func write(to output: inout String, indent: Int) {
    let inner = String(repeating: "  ", count: indent + 1)
    let outer = String(repeating: "  ", count: indent)
    switch self {
    case .number(let value): output += JSONText.number(value)
    case .text(let value): output += JSONText.quoted(value)
    case .flag(let value): output += value ? "true" : "false"
    case .row(let values): output += "[" + values.map(JSONText.number).joined(separator: ", ") + "]"
    case .list(let values):
      if values.isEmpty {
        output += "[]"
        return
      }
      output += "[\n"
      for (index, value) in values.enumerated() {
        output += inner
        value.write(to: &output, indent: indent + 1)
        output += index + 1 < values.count ? ",\n" : "\n"
      }
      output += outer + "]"
    case .record(let members):
      output += "{\n"
      for (index, member) in members.enumerated() {
        output += inner + JSONText.quoted(member.0) + ": "
        member.1.write(to: &output, indent: indent + 1)
        output += index + 1 < members.count ? ",\n" : "\n"
      }
      output += outer + "}"
    }
  }

  /// RFC 8259 §6 knows no infinity; none of our figures is one.
  private static func number(_ value: Double) -> String {
    precondition(value.isFinite, "a figure that is no number")
    return value == value.rounded() && abs(value) < 1e15 ? "\(Int(value))" : "\(value)"
  }

  /// RFC 8259 §7.
  static func quoted(_ text: String) -> String {
    var output = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": output += "\\\""
      case "\\": output += "\\\\"
      case _ where scalar.value < 0x20:
        let digits = String(scalar.value, radix: 16)
        output += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      case _: output.unicodeScalars.append(scalar)
      }
    }
    return output + "\""
  }
}
