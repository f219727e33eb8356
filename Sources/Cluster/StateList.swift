// States on their way to a peer, in the order in which their keys came first: a newer one takes the place of an older
// one of its key. Positions are trivial values, copied as bytes, and so have a list of their own.

/// A list of states with one kind of body.
struct StateList<Body> {
  struct Entry {
    var key: UInt64
    /// The number of the channel's binding at the receiver (`Binding.number`).
    var binding: UInt32
    var body: Body
  }

  private var entries: [Entry] = []
  /// Where each key's entry is.
  private var indices: [UInt64: Int] = [:]

  var count: Int { entries.count }

  subscript(index: Int) -> Entry { entries[index] }

  /// False where it has replaced an older one.
  mutating func append(_ body: Body, key: UInt64, _ binding: UInt32) -> Bool {
    let entry = Entry(key: key, binding: binding, body: body)
    if let index = indices[key] {
      entries[index] = entry
      return false
    }
    indices[key] = entries.count
    entries.append(entry)
    return true
  }

  /// O(rest).
  mutating func removeFirst(_ count: Int) {
    if count == entries.count { return removeAll() }
    guard count > 0 else { return }
    entries.removeFirst(count)
    indices.removeAll(keepingCapacity: true)
    for (index, entry) in entries.enumerated() { indices[entry.key] = index }
  }

  mutating func removeAll() {
    let isKept = entries.capacity <= ClusterLimits.keptStates
    entries.removeAll(keepingCapacity: isKept)
    indices.removeAll(keepingCapacity: isKept)
  }
}
