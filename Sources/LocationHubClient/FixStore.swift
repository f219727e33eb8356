// Where a driver's queue lies.
public import HubMessages

#if canImport(Darwin)
  import Foundation
#else
  import Glibc
#endif

/// The place of a driver's queue: fixes and moves of trips that the hub does not have yet.
///
/// A queue belongs to one driver and one running client, and says on the disk whose it is once a hub has greeted its
/// driver. What a driver has left in it is never sent as another's: it goes, counted, when another one is greeted, and
/// so does what is damaged so that nobody knows whose it is. It
/// holds 20,000 fixes or 4 MiB, whatever comes first; beyond that the oldest fixes go, and are counted
/// (`Backlog.dropped`). `DriverHub.stop(erasing: true)` deletes it.
public struct FixStore: Sendable {
  enum Place: Sendable {
    case folder(String)
    case memory
    case files(@Sendable () -> any FixFiles)
  }

  let place: Place

  /// For messages.
  var name: String {
    switch place {
    case .folder(let path): path
    case .memory, .files: "memory"
    }
  }

  /// A folder for this queue alone; it is made, for the owner only, where it is missing.
  public static func folder(_ path: String) -> FixStore { FixStore(place: .folder(path)) }

  /// Nothing survives the program: for tests, and for drivers that no one bills.
  public static let memory = FixStore(place: .memory)

  /// A folder of the app's own: in Application Support on Apple systems, where no backup takes it; elsewhere in
  /// `$XDG_STATE_HOME` or `~/.local/state`. All drivers of this device that use it share it, one at a time: see
  /// `applicationSupport(for:)`.
  public static var applicationSupport: FixStore { .folder("\(home)/queue") }

  /// A folder of the app's own for each driver: what one has left unsent goes out when the same one is back.
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
    switch place {
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

/// What a driver's queue holds.
public struct Backlog: Sendable, Equatable {
  /// Fixes that the hub does not have yet, as far as this client knows.
  public var fixes = 0
  /// Moves of trips, likewise.
  public var moves = 0
  /// Bytes on the disk.
  public var bytes = 0
  /// Fixes that gave way since the queue was made: at a limit, because they were another driver's, or because their
  /// file was damaged while the app ran. One that was on its way just then may have arrived.
  public var dropped: UInt64 = 0
  /// Fixes that were refused since the client was made: by the hub, for no vehicle can have been there, for instance,
  /// or by the client itself, for the phone's clock was wrong by decades (before the year 2000). Those of a
  /// trip that is another driver's are not among them: they go out again without the trip.
  public var refused: UInt64 = 0
  /// Moves of an earlier life of the app that the hub refused since the client was made: nobody waited for the answer.
  public var refusedMoves: UInt64 = 0
  /// What of the queue was damaged, when the client was made or since, or was another driver's, in words; all else is
  /// sent.
  public var damage: String?
  /// Why the disk does not take fixes now: they are kept in memory meanwhile, and lost with the program. Or why it does
  /// not let them be read: they stay there, it is tried again every 10 s, and what came later waits behind them.
  public var diskFailure: String?
  /// When the oldest of `fixes` was measured; nil where there is none, or the disk does not let it be read.
  public var oldest: Timestamp?
}
