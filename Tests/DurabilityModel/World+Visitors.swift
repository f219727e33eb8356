// Who comes besides the clients, and how the hub gets rid of them.
import HubCore
import HubMessages
import HubTransportSupport
import HubWebSocket

extension World {
  /// Somebody comes whom nobody relies on.
  mutating func visit() {
    guard visitors.count < 4, let kind = Visitor.Kind.allCases.dropLast().randomElement(using: &random) else { return }
    let stranger = HubCore.Actor(role: .rider, id: Names.id("stranger"))
    visit(as: kind, kind == .twin ? clients[pick(World.drivers)].actor : stranger)
  }

  private mutating func visit(as kind: Visitor.Kind, _ actor: HubCore.Actor) {
    guard let link = dial(-1) else { return }
    let visitor = Visitor(kind, actor, link)
    switch kind {
    case .garbage: link.send(raw: (0..<40).map { _ in UInt8(pick(256)) } + [13, 10, 13, 10])
    case .halfRequest: link.send(raw: Array("GET /v1/ws?role=ops&id=o HTTP/1.1\r\nHost: local".utf8))
    case .unmasked, .oversized, .malformed, .flood, .silent, .twin: link.request(actor)
    case .fence: break
    }
    visitors.append(visitor)
    diary.note("a visitor comes: \(kind)")
  }

  /// What visitors have sent arrives, they get their answers and continue.
  mutating func hearVisitors() throws(Violation) {
    for (index, visitor) in visitors.enumerated().reversed() {
      let link = visitor.link
      if visitor.isPlain ? hearAnswer(visitor) : try hearSession(visitor) {
        link.drop(losing: false, reset: oneIn(2))
        visitors.remove(at: index)
      } else {
        visitor.speak()
        arrive(link, .max)
      }
    }
  }

  /// True where it is over.
  private mutating func hearAnswer(_ visitor: Visitor) -> Bool {
    visitor.link.far.arrive()
    let answer = visitor.link.far.receiveAll()
    if visitor.kind == .fence, answer.starts(with: "HTTP/1.1 20".utf8) { reach[.fencesPut] += 1 }
    guard visitor.link.isOver else { return false }
    switch visitor.kind {
    case .garbage: reach[.requestRefused] += 1
    case .halfRequest: if !visitor.link.isHungUp { reach[.requestTimedOut] += 1 }
    case .fence, .unmasked, .oversized, .malformed, .flood, .silent, .twin: break
    }
    return true
  }

  /// True where it is over.
  private mutating func hearSession(_ visitor: Visitor) throws(Violation) -> Bool {
    // Who answers no ping hears nothing but the end.
    for heard in try visitor.link.hear(.max, reader, isDeaf: visitor.kind == .silent) {
      switch heard {
      case .message(.reply(.connected)): visitor.isOpen = true
      case .message(.reply), .message(.publication): break
      case .message(.unknown(let type)): throw Violation(text: "a visitor cannot read \(type)")
      case .closed(let code):
        try note(code, visitor.kind)
        // Of two phones each comes again.
        if visitor.kind == .twin, oneIn(2) { visit(as: .twin, visitor.actor) }
        return true
      case .refused: return true  // too many of one identity
      }
    }
    return visitor.link.isOver
  }

  private mutating func note(_ code: CloseCode?, _ kind: Visitor.Kind) throws(Violation) {
    switch (kind, code?.rawValue) {
    case (.unmasked, 1002): reach[.protocolError] += 1
    case (.oversized, 1009): reach[.tooLarge] += 1
    case (.malformed, 4400): reach[.tooManyBadMessages] += 1
    case (.flood, 4429): reach[.overRate] += 1
    case (_, 4408): reach[.silentTooLong] += 1
    case (.twin, 4409), (.twin, 1000): reach[.replaced] += 1
    case (let kind, let code): throw Violation(text: "a visitor that is \(kind) is closed with \(code ?? 0)")
    }
  }
}
