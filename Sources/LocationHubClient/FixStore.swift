// Where a driver's queue lies.
#if canImport(Darwin)
  import Foundation
#endif

/// The place of a driver's queue: fixes and moves of trips that the hub does not have yet.
///
/// A queue belongs to one driver and one running client. It holds 20,000 fixes or 4 MiB, whatever comes first; beyond
/// that the oldest fixes go, and are counted (`Backlog.dropped`). `DriverHub.stop(erasing: true)` deletes it.
public struct FixStore: Sendable {
  enum Place: Sendable {
    case folder(String)
    case memory
  }

  let place: Place

  /// A folder for this queue alone; it is made, for the owner only, where it is missing.
  public static func folder(_ path: String) -> FixStore { FixStore(place: .folder(path)) }

  /// Nothing survives the program: for tests, and for drivers that no one bills.
  public static let memory = FixStore(place: .memory)

  #if canImport(Darwin)
    /// A folder of the app's own, which is not backed up to iCloud by other means than the app's.
    public static var applicationSupport: FixStore {
      .folder(URL.applicationSupportDirectory.appending(path: "LocationHub/queue").path(percentEncoded: false))
    }
  #endif

  func open() throws(HubError) -> any FixFiles {
    switch place {
    case .memory: return MemoryFiles()
    case .folder(let path):
      do throws(FileFailure) { return try FolderFiles(path) } catch { throw HubError(error, path) }
    }
  }
}

extension HubError {
  init(_ failure: FileFailure, _ path: String) {
    let isInUse = failure.call == "flock"
    let text = isInUse ? "another client uses it" : "\(failure.call) failed (errno \(failure.errno))"
    self.init(.storage, "the queue in \(path): \(text)")
  }
}

/// What a driver's queue holds.
public struct Backlog: Sendable, Equatable {
  /// Fixes that the hub does not have yet, as far as this client knows.
  public var fixes = 0
  /// Moves of trips, likewise.
  public var moves = 0
  /// Bytes on the disk.
  public var bytes = 0
  /// Fixes that gave way at a limit since the queue was made. One that was on its way just then may have arrived.
  public var dropped: UInt64 = 0
  /// Fixes that the hub refused since the client was made: no vehicle can have been there, for instance.
  public var refused: UInt64 = 0
  /// What of the queue was damaged when the client was made, in words; what was whole is sent.
  public var damage: String?
  /// Why the disk does not take fixes now; they are kept in memory meanwhile, and lost with the program.
  public var diskFailure: String?
}
