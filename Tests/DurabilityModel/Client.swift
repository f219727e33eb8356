// A client as the contract wants it: keeps what must arrive until it is acked, sends it again after a break with the
// same ids, subscribes again from where it was; and checks that what it hears has no gap, nothing twice and nothing out
// of order.
import HubBytes
import HubCore
import HubGeo
import HubMessages

struct Client {
  /// One channel, as this client sees it.
  struct View {
    enum Phase { case off, asked, on }
    var isWanted = false
    var phase = Phase.off
    /// The newest event that was seen, and in which epoch of the numbers.
    var last: UInt64 = 0
    var epoch: InlineText?
    /// The events that were missed lead up to this one; nothing else comes before.
    var recoversThrough: UInt64 = 0
    var position: DriverLocation?
    /// Of the positions since it subscribed.
    var newest: Timestamp?

    var resume: ResumePoint? { epoch.map { ResumePoint(since: last, epoch: $0) } }
  }

  /// What is sent again until it is answered.
  struct Kept {
    enum Subject: Equatable {
      case move(Int)
      case batch(Int)
      case decline(Int)
    }
    var subject: Subject
    var isSent = false
  }

  let number: Int
  let actor: Actor
  var link: Link?
  /// `connected` has come.
  var isOpen = false
  var views: [View]
  var kept: [Kept] = []
  /// How each trip stands, as far as this client knows.
  var known: [TripStatus?]

  // Of drivers: indices in the world's list of fixes.
  /// Measured and not sent.
  var backlog: [Int] = []
  /// Sent live, and not known to be stored.
  var unconfirmed: [Int] = []
  /// The ping that was sent last, and how many of `unconfirmed` were sent before it.
  var ping: (message: MessageID, fixes: Int)?
  /// Trips that are offered to it, as far as it knows.
  var offers: [Int] = []
  var clockOffset: Int64 = 0
  var lastFixTime: Int64 = 0

  init(number: Int, actor: Actor, topics: Int, trips: Int) {
    self.number = number
    self.actor = actor
    views = Array(repeating: View(), count: topics)
    known = Array(repeating: nil, count: trips)
  }

  /// The connection is gone: what was not answered is to be sent again, live fixes as a batch.
  mutating func lose() {
    link = nil
    isOpen = false
    ping = nil
    for index in kept.indices { kept[index].isSent = false }
    backlog.insert(contentsOf: unconfirmed, at: 0)
    unconfirmed.removeAll()
    for topic in views.indices { views[topic].phase = .off }
  }

  /// The kept message with this subject was answered.
  mutating func finish(_ subject: Kept.Subject) { kept.removeAll { $0.subject == subject } }

  /// It was answered with "not now".
  mutating func postpone(_ subject: Kept.Subject) {
    for index in kept.indices where kept[index].subject == subject { kept[index].isSent = false }
  }

  // MARK: Subscriptions

  /// What a client that subscribes to a channel may receive.
  struct Terms {
    /// Events are forgotten at a limit, or because a day has passed.
    var forgets: Bool
  }

  mutating func subscribed(_ answer: Subscribed, _ topic: Int, _ terms: Terms) throws(Violation) {
    guard views[topic].phase == .asked else { throw Violation(text: "\(answer.channel): subscribed, not asked for") }
    let resume = views[topic].resume
    if answer.recovered {
      guard let resume, resume.epoch == answer.epoch else {
        throw Violation(text: "\(answer.channel): recovered \(answer.epoch), asked for \(String(describing: resume))")
      }
      guard answer.sequence >= resume.since else {
        throw Violation(text: "\(answer.channel): recovered to \(answer.sequence), had \(resume.since)")
      }
    } else {
      if let resume, resume.epoch == answer.epoch, !terms.forgets || answer.sequence <= resume.since {
        throw Violation(text: "\(answer.channel): not recovered from \(resume.since), hub at \(answer.sequence)")
      }
      views[topic].last = answer.sequence
    }
    views[topic].recoversThrough = answer.sequence
    views[topic].epoch = answer.epoch
    views[topic].phase = .on
    views[topic].newest = nil
    if let position = answer.snapshot?.position { try locate(position, topic) }
  }

  mutating func hear(event sequence: UInt64, _ topic: Int) throws(Violation) {
    guard views[topic].phase == .on else { throw Violation(text: "an event on a channel that is not subscribed to") }
    guard sequence == views[topic].last + 1 else {
      throw Violation(text: "event \(sequence) after \(views[topic].last), topic \(topic)")
    }
    views[topic].last = sequence
  }

  mutating func locate(_ position: DriverLocation, _ topic: Int) throws(Violation) {
    guard views[topic].phase == .on else { throw Violation(text: "a position on a channel that is not subscribed to") }
    let last = views[topic].last
    // What was missed comes first; a snapshot precedes it.
    guard position.after == last, last >= views[topic].recoversThrough else {
      throw Violation(text: "a position after event \(position.after), seen \(last), topic \(topic)")
    }
    if let newest = views[topic].newest, position.timestamp <= newest {
      throw Violation(text: "a position of \(position.timestamp) after one of \(newest), topic \(topic)")
    }
    views[topic].newest = position.timestamp
    views[topic].position = position
  }
}
