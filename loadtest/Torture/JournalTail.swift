// Which fixes are on the disk: reads what segments have grown by since the last time. For a hub that is dead: a group
// that is there in full length is complete then, as nothing but the end of its file can be missing.
import Glibc
import HubCore
import HubDurabilityModel
import HubMessages
import HubSystem

final class JournalTail {
  private let directory: String
  /// By file: how far it was read, to the end of a group.
  private var offsets: [String: Int] = [:]
  private(set) var fixes: Set<DrivenFix> = []

  init(directory: String) { self.directory = directory }

  func read() throws(SystemError) {
    guard let stream = opendir(directory) else { throw SystemError(call: "opendir", errno: errno) }
    defer { closedir(stream) }
    while let entry = readdir(stream) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      guard name.utf8.count == 28, name.utf8.suffix(8).elementsEqual(".segment".utf8) else { continue }
      let bytes = try readFile("\(directory)/\(name)")
      offsets[name] = StoredSegment.forEachGroup(in: bytes, from: offsets[name]) { group in
        StoredSegment.forEachFix(in: group) { driver, fix in
          fixes.insert(DrivenFix(driver: driver, time: fix.measured.timestamp.milliseconds))
        }
      }
    }
  }
}

/// What identifies a fix: whose, and when it was measured (ms since 1970).
struct DrivenFix: Hashable {
  var driver: Identifier
  var time: Int64
}
