// The channels of watched cells, whose indices the area table keeps.
import HubMessages

extension Channels {
  /// A new channel for a cell; nil at the limit of channels.
  mutating func insert(area cell: Channel, for role: Role) -> Int? { table.insert(area: cell, for: role) }

  mutating func setArea(_ channel: Int, _ area: Int) { table.setArea(channel, area) }

  mutating func addSubscriber(_ channel: Int, outlet: Int) { table.addSubscriber(channel, outlet: outlet) }

  /// Publishes a cell's update to the outlets that watch it, and gives these.
  mutating func publish(areaUpdate update: Publication, on channel: ChannelHandle) -> OutletSet {
    let outlets = table.outlets(Int(channel.index))
    count(deliveries: outlets.count)
    emit(.areaUpdate(channel, update), toSubscribersOf: Int(channel.index))
    return outlets
  }
}
