// Where a driver's queue is kept.
public import HubMessages

#if canImport(Darwin)
  import Foundation
#else
  import Glibc
#endif

/// The store of a driver's queue: fixes and moves of trips that the hub does not have yet.
///
/// A queue belongs to one driver and one running client, and stores its driver's id once a hub has identified it.
/// Entries of one driver are never sent as another's: they are dropped and counted when another one connects, and so
/// are damaged ones of an unknown driver. It holds 20,000 fixes or 4 MiB, whichever comes first; beyond that the oldest
/// fixes are dropped and counted (`Backlog.dropped`). `DriverHub.stop(erasing: true)` deletes it.
public struct FixStore: Sendable {
  enum Backing: Sendable {
    case folder(String)
    case memory
    case files(@Sendable () -> any FixFiles)
  }

  let backing: Backing

  /// The text in messages.
  var name: String {
    switch backing {
    case .folder(let path): path
    case .memory, .files: "memory"
    }
  }

  /// A folder only for this queue; created, for the owner only, where it is missing.
  public static func folder(_ path: String) -> FixStore { FixStore(backing: .folder(path)) }

  /// Nothing survives the program: for tests, and for drivers without billing.
  public static let memory = FixStore(backing: .memory)

  /// The app's own folder: in Application Support on Apple systems, excluded from backups; elsewhere in
  /// `$XDG_STATE_HOME` or `~/.local/state`. All drivers of this device share it, one at a time: see
  /// `applicationSupport(for:)`.
  public static var applicationSupport: FixStore { .folder("\(home)/queue") }

  /// The app's own folder for each driver: unsent fixes of one are sent when the same one returns.
  public static func applicationSupport(for driver: DriverID) -> FixStore { .folder("\(home)/queues/driver-\(driver)") }

  private static var home: String {
    #if canImport(Darwin)
      URL.applicationSupportDirectory.appending(path: "LocationHub").path(percentEncoded: false)
    #else
      (variable("XDG_STATE_HOME") ?? "\(variable("HOME") ?? "")/.local/state") + "/location-hub"
    #endif
  }

  #if !canImport(Darwin)
    private static func variable(_ name: String) -> String? {
      guard let value = unsafe getenv(name), unsafe value.pointee != 0 else { return nil }
      return unsafe String(cString: value)
    }
  #endif

  func open() throws(HubError) -> any FixFiles {
    switch backing {
    case .memory: return MemoryFiles()
    case .files(let make): return make()
    case .folder(let path):
      do throws(FileFailure) { return try FolderFiles(path) } catch { throw HubError(error, path) }
    }
  }
}

extension HubError {
  init(_ failure: FileFailure, _ path: String) {
    let isInUse = failure.call == "flock"
    self.init(
      .storage, "the queue in \(path): \(isInUse ? "another client uses it" : "\(failure)")",
      retry: failure.isPassing ? .later(after: nil) : .never)
  }
}

/// The content of a driver's queue.
public struct Backlog: Sendable, Equatable {
  /// Fixes that the hub does not have yet, as far as this client knows.
  public var fixes = 0
  /// Moves of trips that the hub does not have yet, as far as this client knows.
  public var moves = 0
  /// Bytes on the disk.
  public var bytes = 0
  /// Fixes dropped since the queue was made: at a limit, as another driver's, or because their file was damaged while
  /// the app ran. One that was unconfirmed then may have arrived.
  public var dropped: UInt64 = 0
  /// Fixes refused since the client was made: by the hub, for instance as impossible, or by the client itself, as from
  /// before the year 2000. Those of another driver's trip are not counted: they are sent again without the trip.
  public var refused: UInt64 = 0
  /// Moves of an earlier run that the hub refused since the client was made; their caller is gone.
  public var refusedMoves: UInt64 = 0
  /// A description of what was damaged, when the client was made or since, or was another driver's; everything else is
  /// sent.
  public var damage: String?
  /// The present disk error. If fixes cannot be written, they are kept in memory and lost with the program. If they
  /// cannot be read, they stay on disk, it is tried again every 10 s, and later ones wait behind them.
  public var diskFailure: String?
  /// When the oldest of `fixes` was measured; nil where there is none, or it cannot be read.
  public var oldest: Timestamp?
}
