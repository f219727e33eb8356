// The members that bodies of requests may have. Messages may have unknown ones, since apps may be newer than the hub;
// a body that is checked here may not, so that a misspelled member is noticed.
import HubBytes

/// The members that a body may have.
struct BodyMembers {
  fileprivate let own: [JSONKey]
  /// For each member that is an object, the members that it may have.
  fileprivate let inner: [(member: JSONKey, members: [JSONKey])]

  private init(_ own: [JSONKey], _ inner: [(member: JSONKey, members: [JSONKey])] = []) {
    (self.own, self.inner) = (own, inner)
  }

  private static let place: [JSONKey] = [.latitude, .longitude]
  private static let filter: [JSONKey] = [.status, .vehicleType, .tags]
  private static let offer: [JSONKey] = [.vehicleType, .tags, .radius, .drivers, .duration, .limit]

  static let tripRequest = BodyMembers(
    [.tripId, .status, .timestamp, .location, .pickup, .dropoff, .driverId, .riderId, .route, .offer],
    [(.location, place), (.pickup, place), (.dropoff, place), (.offer, offer)])
  static let tripChange = BodyMembers(
    [.pickup, .dropoff, .route, .tripId], [(.pickup, place), (.dropoff, place)])
  static let offers = BodyMembers(offer)
  static let share = BodyMembers([.expires])
  /// A fence may be put as it was shown.
  static let fence = BodyMembers(
    [
      .kind, .title, .circle, .polygon, .corridor, .distance, .drivers, .others, .dwell, .speedLimit, .fenceId,
      .updated, .inside,
    ],
    [(.circle, place + [.radius]), (.corridor, [.route, .width]), (.drivers, filter), (.others, filter)])
}

extension JSONTape {
  /// The text of the error for a member that a body may not have; nil where there is none. O(members).
  func unknownMember(besides known: BodyMembers, _ bytes: Span<UInt8>) -> String? {
    guard self[0].kind == .object else { return nil }
    if let name = unknownName(in: 0, besides: known.own, bytes) { return name }
    let body = members(of: 0)
    for (member, members) in known.inner {
      guard let index = present(body, member), self[index].kind == .object else { continue }
      if let name = unknownName(in: index, besides: members, bytes) { return "\(member).\(name)" }
    }
    return nil
  }

  private func unknownName(in object: Int, besides known: [JSONKey], _ bytes: Span<UInt8>) -> String? {
    let end = Int(self[object].next)
    var i = object + 1
    while i < end {
      if !known.contains(self[i].key) {
        let name = unsafe withText(i, bytes) { unsafe String(decoding: $0.prefix(64), as: UTF8.self) }
        return "\(name): there is no such member; expected \(known.map { "\($0)" }.joined(separator: ", "))"
      }
      i = Int(self[i + 1].next)
    }
    return nil
  }
}
