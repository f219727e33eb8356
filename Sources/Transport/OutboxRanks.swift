// A loop's outboxes by size, so that where all of them together are at their limit the largest gives way, and not
// whichever is next: a connection that lets much pile up cannot take the room of slow readers with little unsent. The
// rule is longest queue drop (Suter, Lakshman, Stiliadis and Choudhury 1999, "Buffer management schemes for supporting
// TCP in gigabit routers with per-flow queueing").
//
// Sizes count by powers of two, which makes each change O(1); what is found has at least half the size of the largest.

/// The outboxes of a loop by the bit width of what they hold.
struct OutboxRanks {
  private var ranks = [[Outbox]](repeating: [], count: Int.bitWidth)

  /// An outbox other than `outbox` in the highest rank that has any; nil where that rank has no other.
  func largest(but outbox: Outbox? = nil) -> Outbox? {
    guard let rank = ranks.last(where: { !$0.isEmpty }), let last = rank.last else { return nil }
    return last !== outbox ? last : rank.dropLast().last
  }

  /// Moves an outbox to the rank of what it holds now.
  mutating func update(_ outbox: Outbox) {
    let rank = Int.bitWidth - outbox.heldBytes.leadingZeroBitCount
    if let place = outbox.place {
      if place.rank == rank { return }
      remove(outbox)
    }
    outbox.place = Outbox.Place(rank: rank, index: ranks[rank].count)
    ranks[rank].append(outbox)
  }

  /// Takes an outbox out, if it is in.
  mutating func remove(_ outbox: Outbox) {
    guard let place = outbox.place else { return }
    outbox.place = nil
    let last = ranks[place.rank].removeLast()
    guard last !== outbox else { return }
    ranks[place.rank][place.index] = last
    last.place = place
  }
}
