// Answers of receivers, cut at every byte.
import HubHTTP
import Testing

@testable import HubWebhooks

@Suite struct ReplyReaderTests {
  private func read(_ text: String, cutAt cut: Int) throws -> ReplyReader.Progress {
    var reader = ReplyReader()
    let bytes = Array(text.utf8)
    var progress = ReplyReader.Progress.incomplete
    #expect(reader.isUntouched)
    for part in [bytes[..<cut], bytes[cut...]] where !part.isEmpty {
      progress = try part.withUnsafeBytes { try reader.read($0) }
    }
    #expect(!reader.isUntouched)
    return progress
  }

  @Test("The status, Retry-After and whether the connection lives are read, however the bytes come")
  func answers() throws {
    let answers: [(String, ReplyReader.Progress)] = [
      ("HTTP/1.1 204 No Content\r\n\r\n", .answered(.status(204), isComplete: true, keepsAlive: true)),
      (
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", .answered(.status(200), isComplete: true, keepsAlive: true)
      ),
      (
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
        .answered(.status(500), isComplete: true, keepsAlive: true)
      ),
      (
        "HTTP/1.1 503 x\r\nRetry-After: 60\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        .answered(.status(503, retryAfterSeconds: 60), isComplete: true, keepsAlive: false)
      ),
      (
        "HTTP/1.1 429 x\r\nRetry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\nContent-Length: 0\r\n\r\n",
        .answered(.status(429), isComplete: true, keepsAlive: true)
      ),
      ("HTTP/1.0 200 OK\r\n\r\nsome", .answered(.status(200), isComplete: false, keepsAlive: false)),
      (
        "HTTP/1.1 200 OK\r\nContent-Length: \(ReplyReader.bodyBytes + 1)\r\n\r\n",
        .answered(.status(200), isComplete: true, keepsAlive: false)
      ),
      (
        "HTTP/1.1 410 x\r\nTransfer-Encoding: chunked\r\n\r\n10001\r\n",
        .answered(.status(410), isComplete: true, keepsAlive: false)
      ),
    ]
    for (text, expected) in answers {
      for cut in 0..<text.utf8.count { #expect(try read(text, cutAt: cut) == expected, "\(text) at \(cut)") }
    }
  }

  @Test("What is no HTTP, or has no end, is refused")
  func refused() {
    let endless = "HTTP/1.1 200 OK\r\n" + String(repeating: "x: y\r\n", count: 4000)
    for text in ["SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1 2000 x\r\n\r\n", endless] {
      #expect(throws: HTTPError.self) { try read(text, cutAt: 3) }
    }
    let interim = "HTTP/1.1 100\r\n\r\n"
    let last = "HTTP/1.1 204 x\r\n\r\n"
    let some = String(repeating: interim, count: HTTPLimits.interimResponses)
    #expect(throws: Never.self) { try read(some + last, cutAt: 3) }
    #expect(throws: HTTPError.tooManyInterimResponses(limit: HTTPLimits.interimResponses)) {
      try read(some + interim + last, cutAt: 3)
    }
  }
}
