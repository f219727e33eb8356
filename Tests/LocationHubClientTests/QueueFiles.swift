// A disk that a test can fill up, tear and cut the power of.
@testable import LocationHubClient

/// What lies on the disk outlives its queue: a test makes another queue with the same disk.
final class QueueDisk {
  var files: [String: [UInt8]] = [:]
  /// Bytes of each file that a power cut leaves.
  var synced: [String: Int] = [:]
  /// Bytes that still fit; nil for as many as one likes.
  var room: Int?
  var syncs = 0
  /// No file can be read, whatever is in it.
  var failsReads = false
  /// What was written in part stays.
  var failsTruncates = false
  /// The most bytes that a reader had room for.
  var maximumRead = 0

  func cutPower() {
    for (name, bytes) in files { files[name] = Array(bytes.prefix(synced[name] ?? 0)) }
    files = files.filter { synced[$0.key] != nil }
  }
}

extension FixQueue {
  var isSynced: Bool { segments.allSatisfy(\.isSynced) && unsaved.isEmpty }
}

final class QueueFiles: FixFiles {
  let disk: QueueDisk

  init(_ disk: QueueDisk) { self.disk = disk }

  private func take(_ count: Int) throws(FileFailure) -> Int {
    guard let room = disk.room else { return count }
    disk.room = max(0, room - count)
    return min(room, count)
  }

  func names() -> [String] { Array(disk.files.keys) }
  func size(_ name: String) -> Int { disk.files[name]?.count ?? 0 }

  func read(_ name: String, from offset: Int, count: Int) throws(FileFailure) -> [UInt8] {
    disk.maximumRead = max(disk.maximumRead, count)
    guard !disk.failsReads else { throw FileFailure(call: "pread", errno: 5) }
    guard let bytes = disk.files[name] else { throw FileFailure(call: "open", errno: 2) }
    return Array(bytes.dropFirst(offset).prefix(count))
  }

  func append(_ bytes: [UInt8], to name: String) throws(FileFailure) {
    let count = try take(bytes.count)
    disk.files[name, default: []] += bytes.prefix(count)
    if count < bytes.count { throw FileFailure(call: "write", errno: 28) }
  }

  func replace(_ name: String, with bytes: [UInt8]) throws(FileFailure) {
    guard try take(bytes.count) == bytes.count else { throw FileFailure(call: "write", errno: 28) }
    disk.files[name] = bytes
    disk.synced[name] = bytes.count
  }

  func truncate(_ name: String, to size: Int) throws(FileFailure) {
    guard !disk.failsTruncates else { throw FileFailure(call: "ftruncate", errno: 5) }
    let bytes = disk.files[name] ?? []
    if let room = disk.room { disk.room = room + max(0, bytes.count - size) }
    disk.files[name] = Array(bytes.prefix(size))
  }

  func sync(_ name: String) {
    disk.syncs += 1
    disk.synced[name] = disk.files[name]?.count
  }

  func remove(_ name: String) {
    if let room = disk.room { disk.room = room + (disk.files[name]?.count ?? 0) }
    disk.files[name] = nil
    disk.synced[name] = nil
  }

  func erase() {
    disk.files = [:]
    disk.synced = [:]
  }
}
