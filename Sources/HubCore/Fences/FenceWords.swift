// The texts of notifications about fences.
import HubMessages

enum FenceWords {
  /// The fence's title, or its id.
  static func name(of fence: Fence) -> String { fence.title.map { "\($0)" } ?? "Fence \(fence.id)" }

  static func text(_ kind: Notification.Kind, _ notice: FenceNotice, driver: Identifier, fence: Fence)
    -> (title: String, body: String)
  {
    let name = name(of: fence)
    let pair = notice.otherID.map { "Drivers \(driver) and \($0)" }
    switch kind {
    case .fenceEnter:
      if let pair { return ("Drivers near", "\(pair) are near each other (\(name)).") }
      return ("Fence entered", "Driver \(driver) has entered \(name).")
    case .fenceExit:
      if let pair { return ("Drivers apart", "\(pair) are no longer near each other (\(name)).") }
      return ("Fence left", "Driver \(driver) has left \(name).")
    case .fenceDwell: return ("Long stay", "Driver \(driver) has stayed in \(name) for \(stay(notice)).")
    case .hazard: return ("Hazard", "\(name): drive with care.")
    case .speeding: return ("Too fast", "\(speed(notice.speed)), where \(speed(notice.speedLimit)) is allowed.")
    case .driverArriving, .driverArrived, .offRoute, .driverOffline, .driverOnline, .message, .unserved:
      return (name, name)
    }
  }

  private static func stay(_ notice: FenceNotice) -> String {
    let seconds = Int(notice.duration ?? 0)
    return seconds < 120 ? "\(seconds) seconds" : "\(seconds / 60) minutes"
  }

  private static func speed(_ metersPerSecond: Double?) -> String {
    "\(Int(((metersPerSecond ?? 0) * 3.6).rounded())) km/h"
  }

  /// The notification that a fence was deleted; its number is the channel's.
  static func deleted(_ fence: Fence, at time: Timestamp) -> Notification {
    Notification(
      kind: .message, title: "Fence deleted", body: "\(name(of: fence)) was deleted.", driverID: nil,
      fence: FenceNotice(fenceID: fence.id, timestamp: time), sequence: 0)
  }
}

extension Notification {
  /// A copy with its number on a channel.
  func numbered(_ sequence: UInt64) -> Notification {
    var made = self
    made.sequence = sequence
    return made
  }
}
