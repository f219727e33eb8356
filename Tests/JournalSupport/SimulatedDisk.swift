// A disk that does what a power cut does: what was not synchronised is gone, whole or in part, and what is left of a
// write that was under way may be its beginning, or its length with other bytes in it. It also does what a kill does:
// everything that was written is still there, but nothing more of it is on stable storage than before.
import Glibc
public import HubJournal
public import HubSystem
public import HubTestSupport

/// `@unchecked Sendable`: each test uses its disk on one thread.
public final class SimulatedDisk: JournalFiles, @unchecked Sendable {
  public final class Content {
    public var bytes: [UInt8] = [] { didSet { startsWithDurable = false } }
    /// The bytes that survive a power cut.
    public fileprivate(set) var durable: [UInt8] = []
    /// Bytes were only appended since the file was synchronised.
    private var startsWithDurable = true

    public init() {}

    fileprivate func append(_ new: UnsafeRawBufferPointer.SubSequence) {
      let started = startsWithDurable
      bytes.append(contentsOf: new)
      startsWithDurable = started
    }

    /// What is durable has memory of its own: the next append would copy the file otherwise.
    fileprivate func synchronize() {
      if startsWithDurable { durable.append(contentsOf: bytes[durable.count...]) } else { durable = bytes }
      startsWithDurable = true
    }
  }

  public let path = "/simulated"
  /// Names as they are now, and as they would be after a power cut.
  public var files: [String: Content] = [:]
  private var durableNames: [String: Content] = [:]
  /// Bytes that may still be written before the disk is full.
  public var room = Int.max
  /// What a write without room says.
  public var fullError = ENOSPC
  fileprivate var isLimited: Bool { room != .max }
  /// What opening a file says; nil where it succeeds.
  public var openError: Int32?
  /// The directory was moved away: its path leads to nothing, or to another one.
  public var isMovedAway = false
  /// What has a name and is no file, by name: "a directory".
  public var odd: [String: String] = [:]
  /// Calls of `synchronize` on a file that succeed before one fails; nil for all.
  public var syncsUntilFailure: Int?
  public fileprivate(set) var syncs = 0
  /// Changing calls until the process that makes them is no more; nil for never. The last one may be done by half.
  public var callsUntilDeath: Int?
  public private(set) var isDead = false

  public init() {}

  public var isAtPath: Bool { !isMovedAway }

  public func freeBytes() -> UInt64? { isLimited ? UInt64(max(0, room)) : nil }

  public func names() throws(SystemError) -> [String] {
    try live()
    return Array(files.keys) + odd.keys
  }

  public func about(_ name: String) throws(SystemError) -> JournalFileFacts? {
    try live()
    if let kind = odd[name] { return JournalFileFacts(kind: .other(kind), bytes: .max) }
    return files[name].map { JournalFileFacts(kind: .file, bytes: $0.bytes.count) }
  }

  public func read(_ name: String) throws(SystemError) -> [UInt8] {
    try live()
    guard let content = files[name] else { throw SystemError(call: "open", errno: ENOENT) }
    return content.bytes
  }

  public func open(_ name: String) throws(SystemError) -> any JournalFile {
    try change()
    if let openError { throw SystemError(call: "openat", errno: openError) }
    let content = files[name] ?? Content()
    files[name] = content
    return SimulatedFile(content, on: self)
  }

  public func openForReading(_ name: String) throws(SystemError) -> (any ReadableJournalFile)? {
    try live()
    if let openError { throw SystemError(call: "openat", errno: openError) }
    return files[name].map { SimulatedReading($0) }
  }

  public func rename(_ name: String, to newName: String) throws(SystemError) {
    try change()
    guard let content = files.removeValue(forKey: name) else { throw SystemError(call: "renameat", errno: ENOENT) }
    files[newName] = content
  }

  public func remove(_ name: String) throws(SystemError) {
    try change()
    guard files.removeValue(forKey: name) != nil else { throw SystemError(call: "unlinkat", errno: ENOENT) }
  }

  public func synchronize() throws(SystemError) {
    try change()
    durableNames = files
  }

  // MARK: Ends

  fileprivate func live() throws(SystemError) {
    if isDead { throw SystemError(call: "kill", errno: ESRCH) }
  }

  /// Counts a changing call, and throws where it is not to be made.
  fileprivate func change() throws(SystemError) {
    try live()
    guard let left = callsUntilDeath else { return }
    if left == 0 {
      isDead = true
      try live()
    }
    callsUntilDeath = left - 1
  }

  /// Another process takes over what is there.
  public func revive() {
    callsUntilDeath = nil
    isDead = false
  }

  /// The power fails: what may still be there afterwards is drawn from `random`.
  public func cutPower(_ random: inout SplitMix64) {
    // A name that was not synchronised may have made it all the same.
    for name in files.keys.sorted() where durableNames[name] == nil {
      if Bool.random(using: &random) { durableNames[name] = files[name] }
    }
    // And one that was taken away may stay away.
    for name in durableNames.keys.sorted() where files[name] == nil && Bool.random(using: &random) {
      durableNames[name] = nil
    }
    files = durableNames
    for name in files.keys.sorted() { tear(files[name]!, &random) }
  }

  /// A byte of what is stored changes by itself: `mask` says which bits.
  public func spoil(_ name: String, _ offset: Int, _ mask: UInt8) {
    files[name]!.bytes[offset] ^= mask
    files[name]!.durable = files[name]!.bytes
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
      for index in torn.indices.suffix(Int.random(in: 0...kept, using: &random)) { torn[index] = 0 }
    default:
      for index in torn.indices.suffix(Int.random(in: 0...kept, using: &random)) {
        torn[index] = UInt8.random(in: .min ... .max, using: &random)
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

  var isLinked: Bool { disk.files.values.contains { $0 === content } }

  func append(_ bytes: UnsafeRawBufferPointer) throws(SystemError) {
    do throws(SystemError) { try disk.change() } catch {
      // The call during which it ended: a part of it was written.
      if disk.callsUntilDeath == 0 { content.append(bytes.prefix(min(bytes.count / 2, disk.room))) }
      disk.callsUntilDeath = nil
      throw error
    }
    let count = min(bytes.count, disk.room)
    content.append(bytes.prefix(count))
    if disk.isLimited { disk.room -= count }
    if count < bytes.count { throw SystemError(call: "write", errno: disk.fullError) }
  }

  func truncate(to size: Int) throws(SystemError) {
    try disk.change()
    if size < content.bytes.count {
      if disk.isLimited { disk.room += content.bytes.count - size }
      content.bytes.removeLast(content.bytes.count - size)
    }
  }

  func synchronize() throws(SystemError) {
    try disk.change()
    if let left = disk.syncsUntilFailure {
      if left == 0 { throw SystemError(call: "fdatasync", errno: EIO) }
      disk.syncsUntilFailure = left - 1
    }
    disk.syncs += 1
    content.synchronize()
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
