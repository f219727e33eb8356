// What a journal has of one driver: read once, group by group, as it grows.
import HubCore
import HubJournalSupport
import HubMessages

@testable import HubDurabilityModel

/// A move of a trip as in its event. No other has its time.
struct PhoneMove: Equatable {
  let trip: Identifier
  let status: TripStatus
  /// ms since 1970
  let time: Int64
}

final class PhoneHistory {
  private let disk: SimulatedDisk
  private var read: [String: Int] = [:]
  /// How often each fix is there, by its time (ms since 1970).
  private(set) var fixes: [Int64: Int] = [:]
  /// By trip, in the order in which they happened.
  private(set) var moves: [String: [PhoneMove]] = [:]

  init(_ disk: SimulatedDisk) { self.disk = disk }

  /// Reads what has come since the last time.
  func catchUp() {
    for (name, file) in disk.files where name.hasSuffix(".segment") && read[name] != file.bytes.count {
      read[name] = StoredSegment.forEachGroup(in: file.bytes, from: read[name]) { group in
        StoredSegment.forEachFix(in: group) { _, fix in
          if fix.disposition != .confirmed { fixes[fix.measured.timestamp.milliseconds, default: 0] += 1 }
        }
        StoredEvents.forEach(in: group) { event, _ in
          if case (.trip(let trip), .tripUpdate(let update)) = (event.channel, event.body) {
            moves["\(trip)", default: []].append(
              PhoneMove(trip: trip, status: update.status, time: update.timestamp.milliseconds))
          }
          return true
        }
      }
    }
  }
}
