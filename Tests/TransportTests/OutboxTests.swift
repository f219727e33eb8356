// The outbox against a plain array of frames that does the same.

import CHubLinux
import HubTestSupport
import Testing

@testable import HubTransport

@Suite struct `Outbox of a blocked connection` {
  struct Model {
    struct Frame {
      var key: UInt64
      var bytes: [UInt8]
      var hasBegun = false
    }
    var frames: [Frame] = []
    var cost: Int { frames.reduce(0) { $0 + $1.bytes.count + EventLoopLimits.frameOverheadBytes } }

    mutating func append(_ bytes: [UInt8], key: UInt64, limit: Int) {
      if key != 0 { frames.removeAll { $0.key == key && !$0.hasBegun } }
      if cost + bytes.count + EventLoopLimits.frameOverheadBytes <= limit {
        frames.append(Frame(key: key, bytes: bytes))
      }
    }

    mutating func take(_ count: Int) -> [UInt8] {
      var taken: [UInt8] = []
      while taken.count < count {
        let part = min(count - taken.count, frames[0].bytes.count)
        taken += frames[0].bytes.prefix(part)
        frames[0].bytes.removeFirst(part)
        frames[0].hasBegun = true
        if frames[0].bytes.isEmpty { frames.removeFirst() }
      }
      return taken
    }
  }

  @Test func `holds its frames and the sealed records before them, and is ranked by both`() {
    var ranks = OutboxRanks()
    let (one, other) = (Outbox(), Outbox())
    _ = [UInt8](repeating: 0, count: 1000).withUnsafeBytes { one.append($0, key: 0, limit: .max) }
    other.sealedBytes = 10_000
    for outbox in [one, other] { ranks.update(outbox) }
    #expect(ranks.largest() === other && other.heldBytes == 10_000 && other.cost == 0)
    other.sealedBytes = 0
    ranks.update(other)
    #expect(ranks.largest() === one && one.heldBytes == one.cost)
  }

  @Test(arguments: [1, 2, 3, 4, 5] as [UInt64])
  func `gives the same bytes as the plain model, whatever is appended, sent and dropped`(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let outbox = Outbox()
    var model = Model()
    let pieces = UnsafeMutableBufferPointer<iovec>.allocate(capacity: 4)
    pieces.initialize(repeating: iovec())
    defer { pieces.deallocate() }
    for _ in 0..<5000 {
      switch Int.random(in: 0..<100, using: &random) {
      case 0:
        let before = model.frames.count
        model.frames.removeAll { !$0.hasBegun }
        #expect(outbox.dropUnbegun() == before - model.frames.count)
      case 1..<70:
        let bytes = (0..<Int.random(in: 1...200, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
        let key = UInt64.random(in: 0...12, using: &random)
        model.append(bytes, key: key, limit: 6000)
        _ = bytes.withUnsafeBytes { outbox.append($0, key: key, limit: 6000) }
      case _:
        var sent: [UInt8] = []
        if outbox.isEmpty { break }
        _ = outbox.send(pieces) { count, asked in
          let part = Int.random(in: 1...asked, using: &random)
          for piece in pieces[..<count] {
            sent += UnsafeRawBufferPointer(start: piece.iov_base, count: piece.iov_len)
          }
          #expect(sent.count == asked)
          sent = Array(sent.prefix(part))
          return .moved(part)
        }
        #expect(sent == model.take(sent.count))
      }
      #expect(outbox.liveCount == model.frames.count)
      #expect(outbox.cost == model.cost)
    }
  }

  @Test func `keeps no more memory than about twice what is unsent, however long it conflates`() {
    let outbox = Outbox()
    let bytes = [UInt8](repeating: 1, count: 100)
    for number in 0..<100_000 {
      _ = bytes.withUnsafeBytes { outbox.append($0, key: UInt64(number % 10 + 1), limit: 100_000) }
    }
    #expect(outbox.liveBytes == 1000)
    #expect(outbox.bufferedBytes <= 8192)
  }

  @Test(arguments: [1, 2, 3] as [UInt64])
  func `of many outboxes one is found that has at least half of what the largest has`(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var ranks = OutboxRanks()
    var all = (0..<40).map { _ in Outbox() }
    let bytes = [UInt8](repeating: 1, count: 5000)
    for _ in 0..<3000 {
      let outbox = all.randomElement(using: &random)!
      switch Int.random(in: 0..<20, using: &random) {
      case 0:
        ranks.remove(outbox)
        all.removeAll { $0 === outbox }
        all.append(Outbox())
      case 1: _ = outbox.dropUnbegun()
      case _:
        let count = Int.random(in: 1...5000, using: &random)
        _ = bytes.withUnsafeBytes { outbox.append(.init(rebasing: $0[..<count]), key: 0, limit: .max) }
      }
      if all.contains(where: { $0 === outbox }) { ranks.update(outbox) }
      let most = all.reduce(0) { max($0, $1.cost) }
      let found = ranks.largest()
      #expect(most == 0 || 2 * (found?.cost ?? 0) >= most)
      #expect(found.map { found in all.contains { $0 === found } } ?? true)
    }
  }
}
