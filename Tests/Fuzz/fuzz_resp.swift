// modules: HubBytes HubSystem HubTransport HubBackplane
// libraries: ssl crypto
// libFuzzer entry for what an engine replies, as a reader and as a connection take it (run.sh in this folder builds and
// runs it).
//
// Input: one byte that says how often the rest is cut, the offsets, then what the engine sends. Checked beyond
// not crashing: cuts change neither the replies nor the error; a connection answers each command at most once, in the
// order of the commands, reports none twice, and is unusable once it reported its loss.

import HubBackplane
import HubBytes

private var limits: BackplaneLimits {
  var limits = BackplaneLimits()
  (limits.lineBytes, limits.bulkBytes, limits.valuesPerReply, limits.replyBytes, limits.replyDepth) = (
    32, 64, 16, 256, 3
  )
  return limits
}

private func read(_ pieces: [ArraySlice<UInt8>]) -> ([RESPValue], RESPError?) {
  var reader = RESPReader(limits)
  var replies: [RESPValue] = []
  for piece in pieces {
    do throws(RESPError) {
      try withCopy(piece) { (bytes) throws(RESPError) in try reader.read(bytes, into: &replies) }
    } catch { return (replies, error) }
  }
  return (replies, nil)
}

private func checkConnection(_ pieces: [ArraySlice<UInt8>]) {
  var connection = RedisConnection(RedisRole(scripts: ["return 1"]), limits: limits, seed: 1)
  connection.connecting(now: 0)
  connection.opened(now: 0)
  var (next, answered, isLost): (UInt64, UInt64, Bool) = (1, 0, false)
  for piece in pieces {
    let isAlive = withCopy(piece) { connection.received($0, now: 0) }
    while connection.submit(.script(0, keys: [], arguments: []), ticket: next, now: 0), next % 4 != 0 { next += 1 }
    next += 1
    for event in connection.takeEvents() {
      precondition(!isLost, "nothing follows the end")
      switch event {
      case .ready: break
      case .reply(let ticket, _), .unknown(let ticket):
        precondition(ticket > 0 && ticket < next, "only what was asked is answered")
        answered += 1
        precondition(answered < next, "each is answered once")
      case .message: preconditionFailure("it listens to nothing")
      case .lost: isLost = true
      }
    }
    precondition(isAlive == !isLost, "it says whether it is of use")
    if !isAlive { return }
  }
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  guard count >= 1 else { return 0 }
  let data = [UInt8](UnsafeBufferPointer(start: start, count: count))
  let input = CutInput(data)
  let (whole, cut) = (read([input.whole]), read(input.pieces))
  precondition(whole == cut, "cuts change nothing")
  checkConnection(input.pieces)
  return 0
}
