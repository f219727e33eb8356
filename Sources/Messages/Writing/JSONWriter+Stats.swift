// The hub's own figures as JSON.
import HubBytes

extension JSONWriter {
  static func writeMembers(_ figures: HubFigures, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    buffer.append("\"channel\":", Channel.stats)
    buffer.append(",\"timestamp\":", figures.timestamp, as: time)
    if figures.members.isEmpty { return }
    buffer.append(",")
    buffer.append(utf8: figures.members)
  }

  /// Appends `history`: the figures of the seconds before a subscription.
  static func writeHistory(_ history: [HubFigures], _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    buffer.append(",\"history\":")
    buffer.append(list: history) { buffer, figures in
      buffer.append("{")
      writeMembers(figures, time, &buffer)
      buffer.append("}")
    }
  }
}
