// The texts of notices to a trip's parties about its driver's progress.
import HubMessages

enum LegNotice {
  case near(TripTarget)
  case reached(TripTarget)
  case offRoute(TripTarget)

  var target: TripTarget {
    switch self {
    case .near(let target), .reached(let target), .offRoute(let target): target
    }
  }

  /// The flag that marks this notice as published.
  var flag: TripNotices {
    switch self {
    case .near(let target): target.near
    case .reached(let target): target.reached
    case .offRoute: .offRoute
    }
  }

  var kind: Notification.Kind {
    switch self {
    case .near: .driverArriving
    case .reached: .driverArrived
    case .offRoute: .offRoute
    }
  }

  /// `seconds` and `meters` are the rest of the way. Its number is set later.
  func notification(seconds: Double, meters: Double, driver: Identifier) -> Notification {
    let text = text(seconds: seconds)
    let leg = Notification.Leg(
      target: target, distance: TrackMath.rounded(meters, to: 1),
      eta: TrackMath.rounded(seconds, to: 1))
    return Notification(
      kind: kind, title: text.title, body: text.body, driverID: driver, leg: leg, sequence: 0)
  }

  private func text(seconds: Double) -> (title: String, body: String) {
    let place = target == .pickup ? "the pickup" : "the dropoff"
    switch self {
    case .near:
      let minutes = Int((seconds / 60).rounded(.up))
      let time = minutes <= 1 ? "in about a minute" : "in about \(minutes) minutes"
      return ("Driver arriving", "The driver will be at \(place) \(time).")
    case .reached: return ("Driver arrived", "The driver is at \(place).")
    case .offRoute: return ("Off route", "The driver has left the trip's route.")
    }
  }
}
