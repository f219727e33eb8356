// Host names are looked up on threads: one that takes long holds up no other where there is a thread for each.
import Dispatch
import Testing

@testable import HubTransport

@Suite struct NameResolverTests {
  private func question(_ host: String, _ attempt: UInt64) -> NameResolver.Question {
    NameResolver.Question(client: 0, attempt: attempt, host: host, port: 1)
  }

  private func next(_ resolver: NameResolver, _ loop: EventLoop) -> [UInt64] {
    var answers: [NameResolver.Answer] = []
    while answers.isEmpty {
      loop.runTurn(timeoutMilliseconds: 1000)
      answers = resolver.takeAnswers()
    }
    return answers.map(\.question.attempt)
  }

  @Test("With a thread for each, a name whose server does not answer delays itself alone; without, those behind it")
  func threads() throws {
    let loop = try EventLoop()
    let answered = DispatchSemaphore(value: 0)
    let lookUp: @Sendable (NameResolver.Question) -> Result<[SocketAddress], NameResolver.LookupError> = {
      if $0.host == "slow" { answered.wait() }
      return .failure(NameResolver.LookupError(text: $0.host))
    }
    let several = NameResolver(capacity: 4, threads: 4, waking: loop.waker, lookUp: lookUp)
    for (attempt, host) in ["slow", "slow", "quick"].enumerated() {
      #expect(several.ask(question(host, UInt64(attempt))))
    }
    #expect(next(several, loop) == [2])
    for _ in 0..<2 { #expect(several.ask(question("quick", 3))) }
    #expect(!several.ask(question("one too many", 9)), "four have no answer")
    var rest: [UInt64] = []
    while rest.count < 2 { rest += next(several, loop) }
    #expect(rest == [3, 3])
    for _ in 0..<2 { answered.signal() }
    while rest.count < 4 { rest += next(several, loop) }
    #expect(rest.suffix(2).sorted() == [0, 1])

    let one = NameResolver(capacity: 4, waking: loop.waker, lookUp: lookUp)
    for (attempt, host) in ["slow", "quick"].enumerated() { #expect(one.ask(question(host, UInt64(attempt)))) }
    loop.runTurn(timeoutMilliseconds: 0)
    #expect(one.takeAnswers().isEmpty)
    answered.signal()
    var order: [UInt64] = []
    while order.count < 2 { order += next(one, loop) }
    #expect(order == [0, 1])
  }
}
