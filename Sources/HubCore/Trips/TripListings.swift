// Lists of trips while they are built, a bounded number of trips a turn. A list of a rare status among a million trips
// takes some hundred turns and delays nobody else.
//
// A list shows each trip as it was when it was looked at. Trips that begin meanwhile are not in it.
import HubMessages

/// A list while it is built, over some turns.
struct TripListing {
  let session: SessionRef
  /// The rest of the query.
  fileprivate(set) var query: TripListQuery
  let replyTo: MessageID?
  fileprivate(set) var page = TripPage()
  /// All trips were looked at.
  fileprivate(set) var isAtEnd = false

  init(_ query: TripListQuery, for session: SessionRef, replyTo: MessageID?) {
    (self.query, self.session, self.replyTo) = (query, session, replyTo)
  }

  var answer: TripAnswer {
    var page = page
    page.next = isAtEnd ? nil : ListCursor(query.below)
    return .list(page)
  }
}

struct TripListings {
  private var listings = FirstInFirstOut<TripListing>()

  var count: Int { listings.count }
  var isEmpty: Bool { listings.isEmpty }

  mutating func append(_ listing: TripListing) { listings.append(listing) }

  /// Continues the lists, `limit` trips in all. Gives those that are done.
  mutating func advance(over trips: borrowing Slab<Trip>, _ order: CreationOrder, limit: Int) -> [TripListing] {
    listings.advance(limit) { $0.advance(over: trips, order, &$1) }
  }
}

extension TripListing {
  /// Looks at as many trips as the budget allows; true where the list is done.
  fileprivate mutating func advance(
    over trips: borrowing Slab<Trip>, _ order: CreationOrder, _ budget: inout Int
  ) -> Bool {
    isAtEnd = true
    var listing = self
    page = TripPage()  // moved out, or appending would copy it
    order.visit(below: query.below) { entry in
      guard budget > 0, listing.page.trips.count < listing.query.limit else {
        listing.isAtEnd = false
        return false
      }
      budget -= 1
      listing.query.below = entry.number
      let trip = Int(entry.trip)
      if listing.query.matches(
        status: trips[trip].status, driverID: trips[trip].driverID, updated: trips[trip].updated)
      {
        var report = trips[trip].report
        report.route = nil  // a page of routes could be megabytes
        listing.page.trips.append(report)
        listing.page.numbers.append(entry.number)
      }
      return true
    }
    self = listing
    return isAtEnd || page.trips.count >= query.limit
  }
}
