// The phone's disk, which fills up.
import Glibc
import HubBytes

@testable import LocationHubClient

/// The phone's disk, which outlives the app.
final class PhoneFiles: FixFiles {
  var room: Int?
  private let memory = MemoryFiles()

  func names() -> [String] { memory.names() }
  func size(_ name: String) -> Int { memory.size(name) }
  func read(_ name: String, from offset: Int, count: Int) -> [UInt8] { memory.read(name, from: offset, count: count) }

  func append(_ bytes: [UInt8], to name: String) throws(FileFailure) {
    let count = min(room ?? .max, bytes.count)
    if let room { self.room = room - count }
    memory.append(Array(bytes.prefix(count)), to: name)
    if count < bytes.count { throw FileFailure(call: "write", errno: ENOSPC) }
  }

  func replace(_ name: String, with bytes: [UInt8]) throws(FileFailure) {
    if let room, room < bytes.count { throw FileFailure(call: "write", errno: ENOSPC) }
    memory.replace(name, with: bytes)
  }

  func truncate(_ name: String, to size: Int) {
    if let room { self.room = room + max(0, memory.size(name) - size) }
    memory.truncate(name, to: size)
  }

  func sync(_ name: String) {}
  func remove(_ name: String) {
    if let room { self.room = room + memory.size(name) }
    memory.remove(name)
  }
  func erase() { memory.erase() }
}
