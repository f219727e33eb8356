// The edges that a sweep line crosses, from below to above: a splay tree (D. Sleator, R. Tarjan, "Self-Adjusting Binary
// Search Trees", JACM 32, 1985), with its nodes linked in their order as well.
//
// The accessed edge becomes the root, so that any m operations on n edges take O((m + n) log n) steps, whatever the
// drawing: no random priorities, which could be predicted, and no balancing. Nothing is compared here: the sweep
// decides the direction.

/// An order of edges, by their numbers from 0.
struct SweepStatus {
  static let none: Int32 = -1

  private var root = SweepStatus.none
  private var parent: [Int32]
  private var left: [Int32]
  private var right: [Int32]
  /// Of each edge in it, the one below and the one above.
  private var before: [Int32]
  private var behind: [Int32]
  /// Edges before this number are counted.
  private let counted: Int
  /// The number of edges in the subtree of each.
  private var counts: [Int32]
  private(set) var lowest = SweepStatus.none
  #if DEBUG
    /// Edges that were passed by, and rotations: for tests.
    private(set) var steps = 0
  #endif

  /// For edges 0..<count, of which those before `counted` are counted by `countUp`.
  init(count: Int, counted: Int) {
    parent = Array(repeating: SweepStatus.none, count: count)
    left = parent
    right = parent
    before = parent
    behind = parent
    counts = Array(repeating: 0, count: count)
    self.counted = counted
  }

  /// The edge below; `none` for the lowest.
  func below(_ edge: Int32) -> Int32 { before[Int(edge)] }

  /// The edge above; `none` for the highest. Above `none` is the lowest.
  func above(_ edge: Int32) -> Int32 { edge == SweepStatus.none ? lowest : behind[Int(edge)] }

  /// Searches for a point: `side` is positive where it is above an edge, negative below, 0 on it.
  ///
  /// - Returns: an edge that it is on, if there is one, and the highest one below it otherwise.
  mutating func find(_ side: (Int32) -> Int) -> (edge: Int32, isOn: Bool) {
    var (edge, last, below) = (root, SweepStatus.none, SweepStatus.none)
    while edge != SweepStatus.none {
      step()
      last = edge
      let side = side(edge)
      guard side != 0 else {
        splay(edge)
        return (edge, true)
      }
      if side > 0 { below = edge }
      edge = side > 0 ? right[Int(edge)] : left[Int(edge)]
    }
    if last != SweepStatus.none { splay(last) }
    return (below, false)
  }

  /// How many of the counted edges there are up to this one.
  mutating func countUp(to edge: Int32) -> Int {
    guard edge != SweepStatus.none else { return 0 }
    splay(edge)
    return Int(count(left[Int(edge)])) + (edge < counted ? 1 : 0)
  }

  /// Inserts an edge directly above another one, or below all where that is `none`.
  mutating func insert(_ edge: Int32, above lower: Int32) {
    let upper = above(lower)
    before[Int(edge)] = lower
    behind[Int(edge)] = upper
    if upper != SweepStatus.none { before[Int(upper)] = edge }
    if lower != SweepStatus.none { behind[Int(lower)] = edge } else { lowest = edge }
    // Of two neighbours, one has no subtree on the side of the other.
    if lower != SweepStatus.none, right[Int(lower)] == SweepStatus.none {
      right[Int(lower)] = edge
      parent[Int(edge)] = lower
    } else if upper != SweepStatus.none {
      left[Int(upper)] = edge
      parent[Int(edge)] = upper
    } else {
      root = edge
    }
    update(edge)
    splay(edge)
  }

  mutating func remove(_ edge: Int32) {
    splay(edge)
    let (lower, upper) = (before[Int(edge)], behind[Int(edge)])
    if lower != SweepStatus.none { behind[Int(lower)] = upper } else { lowest = upper }
    if upper != SweepStatus.none { before[Int(upper)] = lower }
    let (low, high) = (left[Int(edge)], right[Int(edge)])
    if low != SweepStatus.none { parent[Int(low)] = SweepStatus.none }
    if high != SweepStatus.none { parent[Int(high)] = SweepStatus.none }
    left[Int(edge)] = SweepStatus.none
    right[Int(edge)] = SweepStatus.none
    root = low == SweepStatus.none ? high : low
    guard low != SweepStatus.none else { return }
    splay(lower)  // the highest of those below: nothing is to its right
    guard high != SweepStatus.none else { return }
    right[Int(lower)] = high
    parent[Int(high)] = lower
    update(lower)
  }

  // MARK: The tree

  private func count(_ edge: Int32) -> Int32 { edge == SweepStatus.none ? 0 : counts[Int(edge)] }

  private mutating func update(_ edge: Int32) {
    counts[Int(edge)] = count(left[Int(edge)]) + count(right[Int(edge)]) + (edge < counted ? 1 : 0)
  }

  /// Makes an edge the root.
  private mutating func splay(_ edge: Int32) {
    while true {
      let mother = parent[Int(edge)]
      guard mother != SweepStatus.none else { return }
      let grandmother = parent[Int(mother)]
      if grandmother != SweepStatus.none {
        let isStraight = (left[Int(grandmother)] == mother) == (left[Int(mother)] == edge)
        rotate(isStraight ? mother : edge)
      }
      rotate(edge)
    }
  }

  /// Rotates the tree so that an edge comes above its mother.
  private mutating func rotate(_ edge: Int32) {
    step()
    let mother = parent[Int(edge)]
    let grandmother = parent[Int(mother)]
    if left[Int(mother)] == edge {
      let middle = right[Int(edge)]
      left[Int(mother)] = middle
      right[Int(edge)] = mother
      if middle != SweepStatus.none { parent[Int(middle)] = mother }
    } else {
      let middle = left[Int(edge)]
      right[Int(mother)] = middle
      left[Int(edge)] = mother
      if middle != SweepStatus.none { parent[Int(middle)] = mother }
    }
    parent[Int(mother)] = edge
    parent[Int(edge)] = grandmother
    if grandmother == SweepStatus.none {
      root = edge
    } else if left[Int(grandmother)] == mother {
      left[Int(grandmother)] = edge
    } else {
      right[Int(grandmother)] = edge
    }
    update(mother)
    update(edge)
  }

  @inline(__always)
  private mutating func step() {
    #if DEBUG
      steps += 1
    #endif
  }
}
