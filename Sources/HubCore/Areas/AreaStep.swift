// What areas publish, and what a session wants to watch. The channels carry the steps out in
// order (Channels+Cells.swift).
import HubGeo
import HubMessages

enum AreaStep {
  /// The changes of a cell in a tick, in parts, for all who watch it.
  case update([Publication.Body], on: Int)
  /// The tick's last update is published: outlets that got one may send.
  case tickEnded(due: Int64)
  /// A cell's snapshot, in parts, for the sessions that wait. `isCurrent`: it is kept until it is outdated.
  case snapshot([Publication.Body], on: Int, to: [SessionRef], isCurrent: Bool)
  /// A session gets the kept snapshot.
  case keptSnapshot(Int, to: SessionRef)
  case outdated(Int)
  /// Other hubs are asked for their drivers in a cell, or are not any more.
  case watched(GeohashCell)
  case unwatched(GeohashCell)
}

/// The cells that a session wants to watch, with the channels of those that are watched already.
struct AreaView {
  let audience: AreaAudience
  let cells: [GeohashCell]
  let known: [Int?]
}
