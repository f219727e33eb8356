// Events that were given up, on disk beside the progress of their webhook or stream: a line each, for people.
//
//     TIME ID CHANNEL REASON
//
// A full file replaces the one before, so that the newest are kept in a bounded size.
import HubBytes
import HubJournal
import HubMessages
import HubSystem

final class DeadLetterFile {
  private let files: any JournalFiles
  private let name: String

  /// The dead letters of the webhook or stream with this stem (`DeliveryKind.stem`).
  init(_ files: any JournalFiles, _ name: String) {
    self.files = files
    self.name = Self.file(name)
  }

  static func file(_ name: String) -> String { name + ".dead" }

  /// The names of the files of a stem, the older one first.
  static func files(_ name: String) -> [String] { [file(name) + ".old", file(name)] }

  /// `channel`: the event's. Control characters in `reason` are dropped.
  func append(id: String, channel: String, reason: String, at time: Timestamp) throws(SystemError) {
    if let facts = try files.about(name), facts.bytes >= Self.maximumBytes { try files.rename(name, to: name + ".old") }
    var line = ByteBuffer()
    line.append(rfc3339: time)
    let text = reason.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7F }.prefix(200)
    line.append(utf8: " \(id) \(channel) \(String(String.UnicodeScalarView(text)))\n")
    let file = try files.open(name)
    try unsafe line.withBytes { (bytes) throws(SystemError) in unsafe try file.append(bytes) }
    try file.synchronize()
  }

  /// The stored lines, oldest first.
  static func lines(_ files: any JournalFiles, _ name: String) throws(SystemError) -> [Substring] {
    var lines: [Substring] = []
    for file in Self.files(name) where try files.about(file) != nil {
      lines += String(decoding: try files.read(file), as: UTF8.self).split(separator: "\n")
    }
    return lines
  }
}
