// Connecting to a hub's host: its name is looked up for each attempt, since the hub may have moved, and all its
// addresses are tried.
//
// After one that refuses the next is tried at once. One that does not answer uses up the attempt's time
// (`ClientLimits.handshakeSeconds`), and the next attempt begins with the address behind it. After a connection it
// begins with the one that the hub was at.
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
    clients[index].lookup += clients[index].lookup & 1 == 0 ? 1 : 2
    let question = NameResolver.Question(
      client: index, attempt: clients[index].lookup, host: url.host, port: url.port)
    guard names.ask(question) else {
      clients[index].lookup += 1
      return ended(index, .hostNotFound("too many names are being looked up"))
    }
    lookupsUnderWay += 1
    arm(index)
  }

  /// Takes the resolver's results.
  func takeAddresses() {
    guard lookupsUnderWay > 0 else { return }
    for answer in names.takeAnswers() {
      lookupsUnderWay -= 1
      let index = answer.question.client
      // The attempt may have ended meanwhile.
      guard clients[index].lookup == answer.question.attempt else { continue }
      clients[index].lookup += 1
      switch answer.result {
      case .failure(let error): ended(index, .hostNotFound(error.text))
      case .success(let addresses):
        // Where they are unchanged, the one that did not work stays behind the others.
        if Set(addresses) != Set(clients[index].addresses) { clients[index].addresses = addresses }
        tryAddresses(index)
      }
    }
  }

  private func tryAddresses(_ index: Int) {
    clients[index].untried = clients[index].addresses.count
    connectNext(index)
  }

  /// The hub has let the client in at the address tried last.
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
