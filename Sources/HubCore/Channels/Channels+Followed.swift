// Channels of other hubs: what their owners publish, for the sessions of this hub that follow them.
import HubMessages

extension Channels {
  func isFollowed(_ channel: Int) -> Bool { table.isFollowed(channel) }

  mutating func setFollowed(_ channel: Int, _ isFollowed: Bool) { table.setFollowed(channel, isFollowed) }

  /// Whether an outlet has a subscriber of the channel.
  func hasSubscribers(_ channel: Int, outlet: UInt32) -> Bool { table.outlets(channel).contains(Int(outlet)) }

  /// Whether any other outlet has one.
  func hasSubscribers(_ channel: Int, besides outlet: UInt32) -> Bool {
    var others = table.outlets(channel)
    others.remove(Int(outlet))
    return !others.isEmpty
  }

  /// Gives subscribers what the channel's owner has published. Events keep their numbers; of positions and ETAs a newer
  /// one makes an older one worthless, as where they come from.
  mutating func relay(_ publication: Publication, on channel: Int) {
    let key: UInt32 =
      switch publication.body {
      case .driverLocation: 1
      case .etaUpdate: .max
      case .tripUpdate, .notification, .areaUpdate, .rawFix, .countsUpdate, .stats: 0
      }
    let body = publication.body
    let made = self.publication(body, on: publication.channel, at: publication.timestamp)
    let conflationKey = key == 0 ? 0 : UInt64(channel) << 32 | UInt64(key)
    let handle = ChannelHandle(index: UInt32(channel))
    emit(
      .delivery(Delivery(channel: handle, conflationKey: conflationKey, received: 0, publication: made)),
      toSubscribersOf: channel)
    count(deliveries: table.outlets(channel).count)
  }
}
