// Binary sessions (protocol/binary.md): the names agreed with them, which frequent messages leave out.
//
// A position is encoded once for all binary subscribers of its channel on this loop, and any of them may miss it, since
// a newer one replaces it in a full outbox. So what positions leave out (ids, the lag of the driver's clock) is the
// loop's own agreement on the channel: a subscriber gets it with `subscribed`, and changes are sent in `names`, which
// is never replaced. An outbox puts a newer position behind all earlier messages, so each position is read with the
// agreement that it was written by.
import HubCore
import HubMessages

/// What positions leave out for the binary subscribers of a loop, by channel.
struct BinaryNames {
  /// The names that a channel's positions leave out.
  private struct Agreement {
    var names = ImpliedNames()
    /// Other names in the last positions, and how many of them in a row.
    var other = ImpliedNames()
    var repeats = 0
  }

  /// Positions in a row with the same names before they are agreed on. A driver who changes its trip with every fix
  /// costs followers bytes, but no message that can't be dropped.
  static let repeatsBeforeNaming = 4

  private static let none = UInt32.max
  /// By channel: the index of its agreement.
  private var entryOfChannel: [UInt32] = []
  private var agreements: [Agreement] = []
  private var free: [UInt32] = []

  /// True while there is no agreement.
  var isEmpty: Bool { agreements.count == free.count }

  /// Begins the agreement of a subscribed channel of a trip or driver; positions of other channels share no names.
  mutating func open(_ channel: ChannelHandle, _ name: Channel) {
    switch name {
    case .trip, .driver: break
    case .fence, .area, .nearby, .box, .counts, .countsBlock, .fleet, .trips, .raw, .stats: return
    }
    let index = Int(channel.index)
    if entryOfChannel.count <= index {
      entryOfChannel.append(
        contentsOf: repeatElement(Self.none, count: max(index + 1 - entryOfChannel.count, entryOfChannel.count)))
    }
    guard entryOfChannel[index] == Self.none else { return }
    if let entry = free.popLast() {
      agreements[Int(entry)] = Agreement()
      entryOfChannel[index] = entry
    } else {
      entryOfChannel[index] = UInt32(agreements.count)
      agreements.append(Agreement())
    }
  }

  /// Ends the agreement of a channel whose last subscriber has left.
  mutating func forget(_ channel: ChannelHandle) {
    guard let entry = entry(of: channel) else { return }
    entryOfChannel[Int(channel.index)] = Self.none
    free.append(UInt32(entry))
  }

  func names(of channel: ChannelHandle) -> ImpliedNames {
    entry(of: channel).map { agreements[$0].names } ?? ImpliedNames()
  }

  /// Checks a position before it is written; gives new names if they are to be sent before it.
  mutating func follow(
    _ location: borrowing DriverLocation, publishedAt time: Timestamp, on channel: ChannelHandle
  ) -> ImpliedNames? {
    guard let entry = entry(of: channel) else { return nil }
    let lag = location.lagMilliseconds(publishedAt: time)
    if agreements[entry].names.isSaid(by: location, lag) {
      agreements[entry].repeats = 0
      return nil
    }
    if agreements[entry].repeats > 0, agreements[entry].other.isSaid(by: location, lag) {
      agreements[entry].repeats += 1
    } else {
      agreements[entry].other = ImpliedNames(
        driverID: location.driverID, tripID: location.tripID, lagMilliseconds: lag)
      agreements[entry].repeats = 1
    }
    guard agreements[entry].repeats >= Self.repeatsBeforeNaming else { return nil }
    agreements[entry].names = agreements[entry].other
    agreements[entry].repeats = 0
    return agreements[entry].names
  }

  @inline(__always)
  private func entry(of channel: ChannelHandle) -> Int? {
    let index = Int(channel.index)
    guard index < entryOfChannel.count, entryOfChannel[index] != Self.none else { return nil }
    return Int(entryOfChannel[index])
  }
}

extension ImpliedNames {
  @inline(__always)
  fileprivate func isSaid(by location: borrowing DriverLocation, _ lag: Int64) -> Bool {
    guard lagMilliseconds == lag, driverID == location.driverID else { return false }
    return tripID == location.tripID
  }
}
