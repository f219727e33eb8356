// Connecting to a hub's host: its name is looked up for each attempt, since the hub may have moved, and all its
// addresses are tried.
//
// After an address that refuses, the next one is tried at once. An address that does not answer uses up the attempt's
// time (`ClientLimits.handshakeSeconds`), and the next attempt begins with the address behind it. After a connection
// the next attempt begins with the address that the hub was at.
import HubClientCore
import HubMessages
import HubSystem
import HubTransport

extension ClientLoop {
  /// Begins an attempt.
  func connect(_ index: Int) {
    let url = clients[index].session.configuration.url
    if let address = url.address {
      clients[index].addresses = [address]
      return tryAddresses(index)
    }
    clients[index].lookups += 1
    clients[index].awaitedLookup = clients[index].lookups
    let question = NameResolver.Question(
      client: index, attempt: clients[index].lookups, host: url.host, port: url.port)
    guard names.ask(question) else {
      clients[index].awaitedLookup = nil
      return ended(index, .hostNotFound("too many names are being looked up"))
    }
    lookupsUnderWay += 1
    arm(index)
  }

  /// Takes the resolver's results. One that comes after its attempt has failed serves the present attempt, or the next.
  func takeAddresses() {
    guard lookupsUnderWay > 0 else { return }
    for answer in names.takeAnswers() {
      lookupsUnderWay -= 1
      take(answer, for: answer.question.client)
    }
  }

  private func take(_ answer: NameResolver.Answer, for index: Int) {
    let awaited = clients[index].awaitedLookup
    var failure: TransportFailure?
    switch answer.result {
    case .failure(let error): failure = .hostNotFound(error.text)
    case .success(let addresses):
      guard awaited != nil || clients[index].connection == .none else { return }
      // Unchanged addresses keep their order: the one that failed last stays behind the others.
      if Set(addresses) != Set(clients[index].addresses) { clients[index].addresses = addresses }
    }
    // Where the look-up has failed, the addresses of an earlier one are tried.
    if awaited != nil, !clients[index].addresses.isEmpty {
      clients[index].awaitedLookup = nil
      tryAddresses(index)
    } else if awaited == answer.question.attempt {
      clients[index].awaitedLookup = nil
      ended(index, failure)
    }
  }

  private func tryAddresses(_ index: Int) {
    clients[index].untried = clients[index].addresses.count
    connectNext(index)
  }

  /// Puts the address tried last first, since the hub has accepted the client there.
  func preferLastAddress(_ index: Int) {
    if let last = clients[index].addresses.popLast() { clients[index].addresses.insert(last, at: 0) }
  }

  /// Tries the next address, and puts it behind the others.
  func connectNext(_ index: Int) {
    while clients[index].untried > 0 {
      clients[index].untried -= 1
      let address = clients[index].addresses.removeFirst()
      clients[index].addresses.append(address)
      do throws(SystemError) {
        let id = try loop.connect(address, from: clients[index].local, tls: clients[index].tls)
        clients[index].connection = id
        while owners.count <= Int(id.slot) { owners.append(-1) }
        owners[Int(id.slot)] = Int32(index)
        clients[index].deadline = nil
        return arm(index)
      } catch {
        guard clients[index].untried == 0 else { continue }
        ended(index, .connectFailed(errno: error.errno))
        arm(index)
      }
    }
  }
}
