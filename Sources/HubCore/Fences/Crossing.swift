// What a driver's position, or its going, means at a fence. The fences decide it; the hub records it and publishes it.
import HubMessages

/// One event about a driver and a fence.
struct Crossing {
  /// Whose followers are notified.
  enum Audience {
    /// Those of the fence, of the driver, and of the driver's trip.
    case all
    case fenceAndDriver
    case fence
    case driver

    var hasFence: Bool { self != .driver }
    var hasDriver: Bool { self != .fence }
  }

  let kind: Notification.Kind
  let notice: FenceNotice
  let driver: Int
  let fence: Int
  let audience: Audience
  /// What has to be stored before anybody is notified; nil where an earlier crossing of the same look says it.
  let record: DurableRecord?
}

extension DriverProfileTable {
  /// Whether a filter lets a driver of this label through.
  @inline(__always)
  func matches(_ filter: FenceFilter, _ label: DriverLabel) -> Bool {
    if filter.isEmpty { return true }
    if let status = filter.status, status != label.status { return false }
    return matches(label.profile, vehicleType: filter.vehicleType, tags: filter.tags)
  }
}
