import Glibc
// The options of `serve` and `demo` about the journal.
import HubGateway
import HubJournal
import HubRuntime
import HubSystem

/// Where a hub keeps what is durable, when nobody says.
private let defaultDirectory = "./data"

/// Nil where nothing is to be stored.
func journalConfiguration(_ arguments: Arguments) throws(CommandError) -> JournalConfiguration? {
  let about = ["data", "retain", "retain-size", "snapshot-every", "accept-loss"]
  if arguments.has("no-journal") {
    if let option = about.first(where: { arguments.string($0) != nil }) {
      throw .usage("--\(option) is about the journal that --no-journal does without: give one of them")
    }
    return nil
  }
  var configuration = JournalConfiguration(directory: arguments.string("data") ?? defaultDirectory)
  configuration.acceptsLoss = arguments.has("accept-loss")
  configuration.retention.milliseconds = try arguments.duration("retain") ?? configuration.retention.milliseconds
  configuration.retention.bytes = try arguments.size("retain-size") ?? configuration.retention.bytes
  configuration.limits.snapshotBytes = try arguments.size("snapshot-every") ?? configuration.limits.snapshotBytes
  return configuration
}

extension Arguments {
  /// Milliseconds of `90s`, `15m`, `36h`, `30d`: a second up to a hundred years.
  func duration(_ name: String) throws(CommandError) -> Int64? {
    guard let text = string(name) else { return nil }
    let seconds: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
    guard let unit = text.last.flatMap({ seconds[$0] }), let count = Int64(text.dropLast()), count >= 1,
      count <= 100 * 366 * 86_400 / unit
    else { throw .usage("--\(name) must be a time like 90s, 15m, 36h or 30d, not \(text)") }
    return count * unit * 1000
  }

  /// Bytes of `4096`, `64K`, `500M`, `64G`.
  func size(_ name: String) throws(CommandError) -> Int? {
    guard let text = string(name) else { return nil }
    let shifts: [Character: Int] = ["K": 10, "M": 20, "G": 30]
    let shift = text.last.flatMap { shifts[$0] }
    guard let count = Int(shift == nil ? text[...] : text.dropLast()), count >= 1, count <= (1 << 60) >> (shift ?? 0)
    else { throw .usage("--\(name) must be a number of bytes like 4096, 64K, 500M or 64G, not \(text)") }
    return count << (shift ?? 0)
  }
}

/// A directory for a journal that is gone when its owner is.
final class TemporaryJournal {
  let path: String

  init() throws(CommandError) {
    let base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(base)/locationhub-XXXXXX".utf8CString)
    guard let made = mkdtemp(&template) else {
      throw .failed("cannot make a directory in \(base): \(SystemError(call: "mkdtemp", errno: errno))")
    }
    path = String(cString: made)
  }

  deinit {
    do {
      let files = try DiskFiles(beside: path)
      do throws(SystemError) {
        for name in try files.names() { try files.remove(name) }
        guard rmdir(path) == 0 else { throw SystemError(call: "rmdir", errno: errno) }
      } catch {
        StandardStream.error.write("left behind: \(path): \(error)\n")
      }
    } catch {
      StandardStream.error.write("left behind: \(path): \(error)\n")
    }
  }
}
