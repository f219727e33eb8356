// The drivers of a cell, ordered by rank, in a list that is cheap to change when a city is in it.
//
// An operator may watch a cell of 156 by 156 km. In one sorted array of 100,000 drivers each insertion would move 800
// KB on average, 40 µs and more, so the list is cut into pieces of some hundreds. The index of a member matters only
// for those at the front, which are shown; they are in the first few pieces.

struct AreaMembers {
  struct Member: Equatable {
    var rank: UInt32
    var driver: UInt32
    /// The low 32 bits of the tick in which its last change was published.
    var changed: UInt32
    /// In a cell for riders: the low 32 bits of the number of the field (`PublicGrid`) that shows it; the cell has the
    /// others. In a cell for operators: 0. In a block of counts: its cell and status (`BlockCounts.field`).
    var field: UInt32
  }

  /// The slot of a member, or of one to be inserted. Valid until the next insertion or removal.
  struct Slot: Equatable {
    fileprivate var piece: Int
    fileprivate var offset: Int
  }

  /// A longer piece is halved; two neighbours that together have half of it are merged. So 5,000 members are in at most
  /// 40 pieces.
  static let pieceSize = 512

  /// No piece is empty.
  private var pieces: [[Member]] = []
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  // MARK: Finding

  /// By rank, then by driver. O(log n).
  func find(rank: UInt32, driver: UInt32) -> (slot: Slot, isThere: Bool) {
    // The last piece that does not begin behind it.
    var low = 0
    var high = pieces.count
    while low < high {
      let middle = (low + high) / 2
      if (pieces[middle][0].rank, pieces[middle][0].driver) <= (rank, driver) {
        low = middle + 1
      } else {
        high = middle
      }
    }
    guard low > 0 else { return (Slot(piece: 0, offset: 0), false) }
    let piece = low - 1
    low = 0
    high = pieces[piece].count
    while low < high {
      let middle = (low + high) / 2
      let member = pieces[piece][middle]
      if (member.rank, member.driver) < (rank, driver) { low = middle + 1 } else { high = middle }
    }
    let isThere = low < pieces[piece].count && pieces[piece][low].rank == rank && pieces[piece][low].driver == driver
    return (Slot(piece: piece, offset: low), isThere)
  }

  /// Whether fewer than `limit` members come before it. O(limit / 256).
  func isAmongFirst(_ limit: Int, _ slot: Slot) -> Bool {
    if limit > count { return true }
    var before = slot.offset
    var piece = 0
    while before < limit, piece < slot.piece {
      before += pieces[piece].count
      piece += 1
    }
    return before < limit
  }

  subscript(slot: Slot) -> Member { pieces[slot.piece][slot.offset] }

  /// The slot at an index; nil beyond the end. O(index / 256).
  func slot(at index: Int) -> Slot? {
    var rest = index
    for (piece, members) in pieces.enumerated() {
      if rest < members.count { return Slot(piece: piece, offset: rest) }
      rest -= members.count
    }
    return nil
  }

  func forEach(ofFirst limit: Int, _ body: (UInt32) -> Void) {
    var rest = limit
    for piece in pieces where rest > 0 {
      for member in piece.prefix(rest) { body(member.driver) }
      rest -= piece.count
    }
  }

  // MARK: Changing

  /// Notes a change in a tick; false where it is noted already.
  mutating func note(_ slot: Slot, tick: UInt32) -> Bool {
    guard pieces[slot.piece][slot.offset].changed != tick else { return false }
    pieces[slot.piece][slot.offset].changed = tick
    return true
  }

  /// Moves a member to another field; false where it is there already.
  mutating func move(_ slot: Slot, to field: UInt32) -> Bool {
    guard pieces[slot.piece][slot.offset].field != field else { return false }
    pieces[slot.piece][slot.offset].field = field
    return true
  }

  /// Inserts a member at the slot that `find` gave.
  mutating func insert(_ member: Member, at slot: Slot) {
    count += 1
    guard !pieces.isEmpty else { return pieces.append([member]) }
    pieces[slot.piece].insert(member, at: slot.offset)
    guard pieces[slot.piece].count > AreaMembers.pieceSize else { return }
    let rear = Array(pieces[slot.piece][(AreaMembers.pieceSize / 2)...])
    pieces[slot.piece].removeSubrange((AreaMembers.pieceSize / 2)...)
    pieces.insert(rear, at: slot.piece + 1)
  }

  mutating func remove(at slot: Slot) {
    count -= 1
    pieces[slot.piece].remove(at: slot.offset)
    guard !pieces[slot.piece].isEmpty else {
      pieces.remove(at: slot.piece)
      return
    }
    // Its neighbour behind it, or else the one before.
    let first = slot.piece + 1 < pieces.count ? slot.piece : slot.piece - 1
    guard first >= 0, pieces[first].count + pieces[first + 1].count <= AreaMembers.pieceSize / 2 else { return }
    pieces[first].append(contentsOf: pieces[first + 1])
    pieces.remove(at: first + 1)
  }

  mutating func popLast() -> Member? {
    guard let last = pieces.indices.last else { return nil }
    count -= 1
    let member = pieces[last].removeLast()
    if pieces[last].isEmpty { pieces.removeLast() }
    return member
  }
}
