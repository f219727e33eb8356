// Running queries for drivers: limits and turns. They are answered from the index, a bounded part in each turn, so that
// no position waits for them.
import HubMessages

struct Searches {
  /// The fixed cost of a search, in candidates.
  private static let weight = 64

  /// Running ones, the next one first.
  private var boxes: [SearchBox] = []
  /// The number of running ones by session; counting them for each new one would take as long as a turn.
  private(set) var bySession: [SessionRef: Int] = [:]
  /// By identity, over all its sessions (`Actor.hashValue`).
  private(set) var byIdentity: [UInt64: Int] = [:]
  /// The number of searches so far.
  private(set) var begun: UInt64 = 0

  var count: Int { boxes.count }
  var isEmpty: Bool { boxes.isEmpty }

  /// Throws at a limit of running queries.
  private func checkRoom(
    for search: RunningSearch, _ role: Role, _ limits: HubLimits, counting counters: inout HubCounters
  ) throws(ErrorReply) {
    var refusal = ErrorReply(code: .rateLimited, message: "too many queries are under way", retryAfter: 1)
    if bySession[search.session, default: 0] >= limits.queriesPerSession {
      counters.count(.queriesPerSession)
      refusal.message = "a session has at most \(limits.queriesPerSession) queries under way"
    } else if byIdentity[search.identity, default: 0] >= limits.queriesPerIdentity[role] {
      counters.count(.queriesPerIdentity)
      refusal.message = role.queriesLimit(limits.queriesPerIdentity)
      refusal.isOwnLimit = true
    } else if count >= role.share(of: limits.queries) {
      counters.count(full: .queries)
    } else {
      return
    }
    counters.searchesRefused += 1
    throw refusal
  }

  /// Begins a query. Throws at the limit of its session, its actor or its role.
  mutating func begin(
    _ search: RunningSearch, _ role: Role, _ view: SearchView, _ limits: HubLimits,
    counting counters: inout HubCounters
  ) throws(ErrorReply) {
    try checkRoom(for: search, role, limits, counting: &counters)
    bySession[search.session, default: 0] += 1
    byIdentity[search.identity, default: 0] += 1
    begun += 1
    var running = search
    if running.audience == .riders {
      running.tieBreak = view.audience.tieBreak(search: begun, at: view.now.uptime)
    }
    boxes.append(SearchBox(running))
  }

  /// Continues running searches, one after the other, until the turn's budget is used up. One that needs more waits
  /// until all others had a turn. Gives those that are done.
  mutating func advance(in drivers: borrowing Drivers, _ view: SearchView, budget whole: SearchBudget) -> [SearchBox] {
    var all: [SearchBox] = []
    swap(&all, &boxes)
    var budget = whole
    var index = 0
    var (done, unfinished): ([SearchBox], [SearchBox]) = ([], [])
    while index < all.count, all[index].running.mayBegin(isFirst: index == 0, budget, of: whole) {
      let box = all[index]
      if box.running.advance(in: drivers, view, &budget) {
        budget.candidates = max(0, budget.candidates - Searches.weight)
        forget(box.running)
        done.append(box)
      } else {
        box.running.turns += 1
        unfinished.append(box)
      }
      index += 1
    }
    boxes = all[index...] + unfinished
    return done
  }

  private mutating func forget(_ search: RunningSearch) {
    let left = bySession[search.session, default: 0] - 1
    bySession[search.session] = left > 0 ? left : nil
    let leftOfIdentity = byIdentity[search.identity, default: 0] - 1
    byIdentity[search.identity] = leftOfIdentity > 0 ? leftOfIdentity : nil
  }
}
