// A disk that does what a power cut does: what was not synchronised is gone, whole or in part, and what is left of a
// write that was under way may be its beginning, or its length with other bytes in it.
import Glibc
import TestSupport
import Transport

@testable import Journal

/// `@unchecked Sendable`: each test uses its disk on one thread.
final class SimulatedDisk: JournalFiles, @unchecked Sendable {
  final class Content {
    var bytes: [UInt8] = []
    /// The bytes that survive a power cut.
    var durable: [UInt8] = []
  }

  let path = "/simulated"
  /// Names as they are now, and as they would be after a power cut.
  var files: [String: Content] = [:]
  private var durableNames: [String: Content] = [:]
  /// Bytes that may still be written before the disk is full.
  var room = Int.max
  /// Calls of `synchronize` on a file that succeed before one fails; nil for all.
  var syncsUntilFailure: Int?
  var syncs = 0
  /// Calls that change something and succeed before the power goes: all after them fail; nil for any number.
  var callsUntilPowerCut: Int?

  /// Counts a call that changes something.
  fileprivate func change(_ call: StaticString) throws(SystemError) {
    guard let left = callsUntilPowerCut else { return }
    if left == 0 { throw SystemError(call: call, errno: EIO) }
    callsUntilPowerCut = left - 1
  }

  func names() throws(SystemError) -> [String] { Array(files.keys) }

  func read(_ name: String) throws(SystemError) -> [UInt8] {
    guard let content = files[name] else { throw SystemError(call: "open", errno: ENOENT) }
    return content.bytes
  }

  func openForReading(_ name: String) throws(SystemError) -> (any ReadableJournalFile)? {
    files[name].map { SimulatedReading($0) }
  }

  func open(_ name: String) throws(SystemError) -> any JournalFile {
    let content = files[name] ?? Content()
    files[name] = content
    return SimulatedFile(content, on: self)
  }

  func rename(_ name: String, to newName: String) throws(SystemError) {
    try change("renameat")
    guard let content = files.removeValue(forKey: name) else { throw SystemError(call: "renameat", errno: ENOENT) }
    files[newName] = content
  }

  func remove(_ name: String) throws(SystemError) {
    try change("unlinkat")
    guard files.removeValue(forKey: name) != nil else { throw SystemError(call: "unlinkat", errno: ENOENT) }
  }

  func synchronize() throws(SystemError) {
    try change("fsync")
    durableNames = files
  }

  /// The power fails: what may still be there afterwards is drawn from `random`.
  func cutPower(_ random: inout SplitMix64) {
    // A name that was not synchronised may have made it all the same.
    for (name, content) in files where durableNames[name] == nil {
      if Bool.random(using: &random) { durableNames[name] = content }
    }
    // And one that was taken away may stay away.
    for name in durableNames.keys.sorted() where files[name] == nil && Bool.random(using: &random) {
      durableNames[name] = nil
    }
    files = durableNames
    for content in files.values { tear(content, &random) }
  }

  private func tear(_ content: Content, _ random: inout SplitMix64) {
    guard content.bytes.starts(with: content.durable), content.bytes.count > content.durable.count else {
      // It was cut and the cut did not get through, or did.
      if Bool.random(using: &random) { content.bytes = content.durable }
      content.durable = content.bytes
      return
    }
    let tail = content.bytes[content.durable.count...]
    let kept = Int.random(in: 0...tail.count, using: &random)
    var torn = Array(tail.prefix(kept))
    switch Int.random(in: 0..<3, using: &random) {
    case 0: break
    case 1:  // the file grew, and the blocks were not written
      for place in torn.indices.suffix(Int.random(in: 0...kept, using: &random)) { torn[place] = 0 }
    default:
      for place in torn.indices.suffix(Int.random(in: 0...kept, using: &random)) {
        torn[place] = UInt8.random(in: .min ... .max, using: &random)
      }
    }
    content.bytes = content.durable + torn
    content.durable = content.bytes
  }
}

private final class SimulatedFile: JournalFile {
  private let content: SimulatedDisk.Content
  private unowned let disk: SimulatedDisk

  init(_ content: SimulatedDisk.Content, on disk: SimulatedDisk) {
    self.content = content
    self.disk = disk
  }

  var size: Int { content.bytes.count }

  func append(_ bytes: UnsafeRawBufferPointer) throws(SystemError) {
    try disk.change("write")
    let count = min(bytes.count, disk.room)
    content.bytes.append(contentsOf: bytes.prefix(count))
    disk.room -= count
    if count < bytes.count { throw SystemError(call: "write", errno: ENOSPC) }
  }

  func truncate(to size: Int) throws(SystemError) {
    if size < content.bytes.count {
      if disk.room != .max { disk.room += content.bytes.count - size }
      content.bytes.removeLast(content.bytes.count - size)
    }
  }

  func synchronize() throws(SystemError) {
    try disk.change("fdatasync")
    if let left = disk.syncsUntilFailure {
      if left == 0 { throw SystemError(call: "fdatasync", errno: EIO) }
      disk.syncsUntilFailure = left - 1
    }
    disk.syncs += 1
    content.durable = content.bytes
  }
}

private final class SimulatedReading: ReadableJournalFile {
  private let content: SimulatedDisk.Content

  init(_ content: SimulatedDisk.Content) { self.content = content }

  func size() throws(SystemError) -> Int { content.bytes.count }

  func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
    let bytes = content.bytes.dropFirst(offset).prefix(buffer.count)
    buffer.copyBytes(from: bytes)
    return bytes.count
  }
}
