// The events of a driver's position, or of its removal, at fences. The fences decide; the hub records and publishes.
import HubMessages

/// One event about a driver and a fence.
struct Crossing {
  /// The channels that get it.
  enum Audience {
    /// The channels of the fence, the driver and the driver's trip.
    case all
    case fenceAndDriver
    case fence
    case driver
    /// No channel: the crossing is only recorded.
    case nobody

    var hasFence: Bool { self != .driver && self != .nobody }
    var hasDriver: Bool { self != .fence && self != .nobody }
  }

  let kind: Notification.Kind
  let notice: FenceNotice
  let driver: Int
  let fence: Int
  let audience: Audience
  /// Stored before anybody is notified; nil where an earlier crossing of the same position includes it.
  let record: DurableRecord?
}

extension DriverProfileTable {
  /// Whether a filter accepts a driver of this label.
  @inline(__always)
  func matches(_ filter: FenceFilter, _ label: DriverLabel) -> Bool {
    if filter.isEmpty { return true }
    if let status = filter.status, status != label.status { return false }
    return matches(label.profile, vehicleType: filter.vehicleType, tags: filter.tags)
  }
}
